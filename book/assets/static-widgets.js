// Runs the widgets of a page that has no kernel: no request is made, so it works from a folder too.
// window.WIDGET_MODULES ({name: source}) is written into the page by book/_ext/companion.py; a module
// is imported from a blob, because browsers refuse to import one from a file.
(() => {
  const loaded = new Map();

  function load(name) {
    if (!loaded.has(name)) {
      const source = new Blob([window.WIDGET_MODULES[name]], { type: "text/javascript" });
      loaded.set(name, import(URL.createObjectURL(source)));
    }
    return loaded.get(name);
  }

  // Deflated JSON in base64, as host.py writes it.
  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }

  async function mount(host) {
    const state = await unpack(host.querySelector("script").textContent);
    const widget = (await load(host.dataset.module)).default;
    const el = document.createElement("div");
    const values = { state, page: true }; // of anywidget's model, with no Python behind it
    widget.render({ model: { get: (name) => values[name] }, el });
    host.querySelector(".static-widget-fallback").replaceWith(el);
    host.dataset.ready = "yes";
  }

  function mountAll() {
    /** @type {NodeListOf<HTMLElement>} */
    const hosts = document.querySelectorAll(".static-widget");
    for (const host of hosts) {
      mount(host).catch((error) => {
        host.dataset.ready = "failed"; // the fallback's text stays
        console.error(`widget ${host.id}:`, error);
      });
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", mountAll);
  else mountAll();
})();
