// Where readings come from: the grid inside the page, or the engine behind a live widget. Either way
// `ask(setting)` leads to `answer(setting, readings, note)` or `refuse(message)`, the latest setting winning.

import { openGrid } from "../explorer/grid.js";

// The readings computed when the page was built: answers at once.
export async function openStatic(payload, { answer }) {
  const grid = await openGrid(payload);
  return {
    ask(setting, others) {
      const read = (policy) => grid.read({ ...setting, policy });
      answer(setting, readEach(setting.policies, read), readEach(others, read), "");
    },
    close() {},
  };
}

function readEach(policies, read) {
  return new Map(policies.map((policy) => [policy, read(policy)]));
}

const PATIENCE = 1000; // milliseconds until the reader is told that the kernel is busy

// The engine: one question is under way at a time, and of those asked meanwhile only the last is sent.
export function openLive(model, { answer, refuse, wait }) {
  let number = 0;
  let underWay = null;
  let waiting = null;
  let timer = 0;

  function send(setting) {
    number += 1;
    underWay = { number, setting, begun: performance.now() };
    model.send({ kind: "ask", request: number, setting });
    clearTimeout(timer);
    timer = setTimeout(wait, PATIENCE);
  }

  function receive(message) {
    if (message?.kind !== "answer" || message.request !== underWay?.number) return; // an earlier view's
    const { setting, begun } = underWay;
    underWay = null;
    clearTimeout(timer);
    if (waiting) send(waiting);
    else if (message.error) refuse(message.error);
    if (!message.error) {
      const took = performance.now() - begun;
      const note = `Recomputed by the engine: ${message.episodes} episodes, ${Math.round(took)} ms.`;
      answer(setting, new Map(Object.entries(message.readings)), new Map(), note);
    }
    waiting = null;
  }

  model.on("msg:custom", receive);
  return {
    ask(setting) {
      if (underWay) waiting = setting;
      else send(setting);
    },
    close() {
      clearTimeout(timer);
      model.off("msg:custom", receive);
    },
  };
}
