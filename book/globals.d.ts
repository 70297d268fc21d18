// What the book's pages hold beside the scripts: names that Sphinx, MathJax and the extensions write.

/** What the scripts of a page know of one another: each adds its part (see the head of each). */
declare var EnvProbe: any;

/** Sphinx's own settings of a page. */
declare const DOCUMENTATION_OPTIONS: { SHOW_SEARCH_SUMMARY: boolean };

/** Numbers and words of the paper, with the places that show them (`book/_ext/paper.py`). */
declare const PAPER_WORDS: [string, string, string][];

interface Window {
  MathJax?: any;
  /** The sources of the page's widgets, by name (`book/_ext/companion.py`). */
  WIDGET_MODULES: Record<string, string>;
}
