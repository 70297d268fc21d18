// Two small controls: how much of the range the first plot shows, and a link to what is set.

import { element, freshId, KEEPS_KEYS, say } from "./dom.js";

// Returns {root, update(setting)}.
export function closeUp(onChange) {
  const id = freshId("ew-close");
  const input = element("input", { type: "checkbox", id, ...KEEPS_KEYS });
  input.addEventListener("change", () => onChange({ close: input.checked }));
  const root = element("span", { class: "ew-box" }, input, element("label", { for: id }, "Close-up of the first plot"));
  return { root, update: ({ close }) => (input.checked = close) };
}

// A button that copies a link to the present setting, or shows it where the browser does not let it.
export function copyLink(fragment) {
  const button = element("button", { type: "button", class: "ew-button" }, "Copy link to this setting");
  const said = element("span", { role: "status" });
  const shown = element("input", { type: "text", readonly: "", hidden: "", "aria-label": "Link to this setting" });
  button.addEventListener("click", async () => {
    const link = new URL(fragment(), location.href).href;
    try {
      await navigator.clipboard.writeText(link);
      say(said, "Copied.");
    } catch {
      shown.hidden = false;
      shown.value = link;
      shown.select();
      say(said, "Copy it from here:");
    }
  });
  return element("span", { class: "ew-link" }, button, " ", said, shown);
}
