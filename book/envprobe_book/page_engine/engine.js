// The engine in a page: conditions and seeds in, measures and logs out, the same bits as in Python.
//
// A classic script, for pages opened from a folder too. It makes `EnvProbe.engine`; a world's module and
// knobs are a script of their own beside it, which is loaded when the world is first asked for.
//
//   ready(world)                                  a promise: the world can be run
//   run(conditions, seeds, {signal, onprogress, logs, most, zero, patient})
//                                                 a promise of one object a condition: {measure: typed array,
//                                                 [row]}, `digest` a BigUint64Array; with `logs` (true, or
//                                                 a list of names) also what happened, see `logsOf`;
//                                                 `most` takes the first seeds alone; with `zero` also what
//                                                 the best table that never changes scores, learned
//                                                 from so many reference seeds (true: from all); what is
//                                                 `patient` waits while anything else is to be done
//   play(condition, seed)                         the same of one episode, with its logs
//   episodes(condition, seeds)                    a promise of episodes that the page takes step by step
//   setting(condition)                            a promise of the record's bytes
//   names()                                       worlds, policies, regimes, protocols, profiles, their values
//   protocol(text)                                the value of every switch of a protocol
//   resampling()                                  a promise of the bootstrap's machine, see statistics.js
//   resample(tasks, {signal, patient})            a promise of what it writes for each task, by the workers
//   breath()                                      a promise of a turn for the page, between two pieces of work
//   overtaken()                                   the error of what is overtaken
//
// Conditions are plain objects (see envprobe_book/page_engine/settings.py). Seeds are an array, a text as on
// the command line ("0:220"), one for all conditions or a list of them one each ({each: [...]}), or
// null: the condition's own. What goes wrong is an Error of one sentence; what is overtaken an AbortError.
(() => {
  "use strict";

  // What runs a world's module. Its text is also the worker's, so it uses nothing from outside.
  function makeMachines() {
    const BASE = 1 << 20; // the stack lies below
    const MOST_TABLES = 500; // that are kept
    const machines = {}; // one a world, and the bootstrap's

    // A compiled function with its memory, and how Numba passes arrays.
    class Module {
      constructor(module) {
        this.memory = new WebAssembly.Memory({ initial: 32 });
        const stack = new WebAssembly.Global({ value: "i32", mutable: true }, BASE);
        const table = new WebAssembly.Table({ initial: 8, element: "anyfunc" });
        const env = { __linear_memory: this.memory, __stack_pointer: stack, __indirect_function_table: table };
        this.call = /** @type {Function} */ (new WebAssembly.Instance(module, { env }).exports.run);
        this.clear();
      }

      clear() {
        this.top = BASE;
      }

      room(size) {
        const at = (this.top + 15) & ~15;
        this.top = at + size;
        const missing = Math.ceil((this.top - this.memory.buffer.byteLength) / 65536);
        if (missing > 0) this.memory.grow(missing);
        new Uint8Array(this.memory.buffer).fill(0, at, this.top);
        return at;
      }

      floats(rows, columns) {
        return { start: this.room(8 * rows * columns), rows, columns, size: 8 };
      }

      values({ start, rows, columns }) {
        return new Float64Array(this.memory.buffer, start, rows * columns);
      }

      one(start, count, size) {
        return [0, 0, BigInt(count), BigInt(size), start, BigInt(count), BigInt(size)];
      }

      two({ start, rows, columns, size }) {
        return [
          0, 0, BigInt(rows * columns), BigInt(size), start,
          BigInt(rows), BigInt(columns), BigInt(columns * size), BigInt(size),
        ];
      }

      three({ start, rows, columns, depth, size }) {
        const strides = [columns * depth * size, depth * size, size];
        return [0, 0, BigInt(rows * columns * depth), BigInt(size), start, ...[rows, columns, depth, ...strides].map(BigInt)];
      }
    }

    class Machine extends Module {
      constructor(module, described, constant = null) {
        super(module);
        this.described = described;
        this.zeros = constant && new Module(constant); // of tables that never change
        this.tables = new Map(); // the best one of each condition
      }

      // Lay out what a block of episodes needs: `rows` logs and `blocks` episodes, 1 where one serves all.
      lay(setting, seeds, { rows, blocks, schedules = null }) {
        const { entry, measures, episode, reads } = this.described;
        this.clear();
        const n = seeds.length;
        const horizon = Number(new DataView(setting.buffer, setting.byteOffset).getBigInt64(reads.horizon, true));
        const width = schedules ? horizon : 0;
        const at = { n, horizon, rows, blocks, width, schedules: schedules ? n : 1 };
        at.setting = this.room(setting.length);
        at.episodes = this.room(episode.size * blocks);
        at.seeds = this.room(8 * n);
        at.logs = this.room(entry.size * (horizon + 1) * rows);
        at.schedule = this.room(8 * Math.max(1, at.schedules * width));
        at.fields = this.room(8 * blocks);
        at.measures = this.room(measures.size * n);
        at.returned = this.room(16);
        at.own = this.room(16);
        const bytes = new Uint8Array(this.memory.buffer);
        bytes.set(setting, at.setting);
        new BigInt64Array(this.memory.buffer, at.seeds, n).set(seeds);
        if (schedules) new BigInt64Array(this.memory.buffer, at.schedule, n * width).set(schedules);
        const view = new DataView(this.memory.buffer);
        view.setInt16(at.logs + entry.parts.action.at, this.described.wait, true);
        view.setInt16(at.logs + entry.parts.probe.at, this.described.none, true);
        view.setFloat64(at.logs + entry.parts.score.at, NaN, true);
        for (let done = 1, all = rows * (horizon + 1); done < all; done *= 2) {
          const more = Math.min(done, all - done) * entry.size;
          bytes.copyWithin(at.logs + done * entry.size, at.logs, at.logs + more);
        }
        for (let i = 0; i < blocks; i++) view.setBigInt64(at.fields + 8 * i, BigInt(this.described.none), true);
        return at;
      }

      // Take the episodes through some stages, as `kernel.run` does.
      take(stages, at) {
        const { entry, measures, episode } = this.described;
        const logs = { start: at.logs, rows: at.rows, columns: at.horizon + 1, size: entry.size };
        const schedule = { start: at.schedule, rows: at.schedules, columns: at.width, size: 8 };
        const status = this.call(
          at.returned, at.returned + 8, BigInt(stages), at.setting,
          ...this.one(at.episodes, at.blocks, episode.size), ...this.one(at.seeds, at.n, 8), ...this.two(logs),
          ...this.two(schedule), ...this.one(at.fields, at.blocks, 8), ...this.one(at.measures, at.n, measures.size),
          at.own, 0, 0,
        );
        if (status !== 0) throw new Error(`The engine stopped with status ${status}.`);
        const row = new DataView(this.memory.buffer).getBigInt64(at.returned, true);
        if (row !== BigInt(this.described.none)) throw new Error(`The policy failed in episode ${row}.`);
      }

      // The measures, a typed array [row] each.
      columns(at) {
        const { size, parts } = this.described.measures;
        const view = new DataView(this.memory.buffer);
        const columns = {};
        for (const [name, { at: offset, type }] of Object.entries(parts)) {
          const column = new KINDS[type].array(at.n);
          const { read } = KINDS[type];
          for (let i = 0, place = at.measures + offset; i < at.n; i++, place += size) column[i] = read(view, place);
          columns[name] = column;
        }
        return columns;
      }

      // The fields that were probed, [row, step], as a replayed policy is given them.
      probes(at) {
        const { size, parts } = this.described.entry;
        const view = new DataView(this.memory.buffer);
        const found = new BigInt64Array(at.n * at.horizon);
        for (let row = 0; row < at.n; row++) {
          for (let t = 0; t < at.horizon; t++) {
            const place = at.logs + (row * (at.horizon + 1) + t) * size + parts.probe.at;
            found[row * at.horizon + t] = BigInt(view.getInt16(place, true));
          }
        }
        return found;
      }

      // What happened: of each name {values: a typed array, shape: [row, time] or [row, time, field]}, t = 0..H.
      // Behind an episode's end it is empty: 0, WAIT, NONE, NaN (as of `batch.Trajectory`).
      // Given a list of names, these alone.
      logsOf(at, columns, names) {
        const { entry, byField, reads } = this.described;
        const view = new DataView(this.memory.buffer);
        const fields = Number(view.getBigInt64(at.setting + reads.fields, true));
        const slots = view.getInt8(at.setting + reads.by_slots) === 1;
        const logs = {};
        for (const [name, { at: offset, type }] of Object.entries(entry.parts)) {
          if (Array.isArray(names) && !names.includes(name)) continue;
          const width = byField.includes(name) ? fields : 1;
          const { array, read, size } = KINDS[type];
          const values = new array(at.n * (at.horizon + 1) * width);
          let next = 0;
          for (let i = 0; i < at.n * (at.horizon + 1); i++) {
            const place = at.logs + i * entry.size + offset;
            for (let field = 0; field < width; field++) values[next++] = read(view, place + field * size);
          }
          const shape = [at.n, at.horizon + 1];
          logs[name] = { values, shape: byField.includes(name) ? [...shape, fields] : shape };
        }
        const { values } = logs.accuracy ?? {};
        for (let row = 0; values && row < at.n; row++) {
          const begin = row * (at.horizon + 1);
          if (slots) values[begin] = NaN;
          for (let t = columns.steps[row] + 1; t <= at.horizon; t++) values[begin + t] = NaN;
        }
        return logs;
      }

      // The columns of a task's episodes, and their logs.
      run({ setting, replays, seeds, logs, zero }) {
        const at = this.played(setting, replays, seeds, Boolean(logs || zero));
        const columns = this.columns(at);
        const found = logs ? { columns, logs: this.logsOf(at, columns, logs) } : { columns };
        if (zero) columns.zero = this.zeroOf(setting, replays, zero, this.truth(at, columns));
        return found;
      }

      // Run episodes; with `logged`, a row of logs each.
      played(setting, replays, seeds, logged) {
        const { whole } = this.described.stages;
        let schedules = null;
        if (replays) {
          const played = this.lay(replays, seeds, { rows: seeds.length, blocks: 1 });
          this.take(whole, played);
          schedules = this.probes(played);
        }
        const at = this.lay(setting, seeds, { rows: logged ? seeds.length : 1, blocks: 1, schedules });
        this.take(whole, at);
        return at;
      }

      // What a table is compared with: gold [row, time, field] and places [row, time] as bytes, and last times.
      truth(at, /** @type {any} */ { steps }) {
        const { entry, reads } = this.described;
        const fields = Number(new DataView(this.memory.buffer).getBigInt64(at.setting + reads.fields, true));
        const bytes = new Uint8Array(this.memory.buffer), times = at.horizon + 1;
        const gold = new Uint8Array(at.n * times * fields), place = new Uint8Array(at.n * times);
        for (let i = 0; i < at.n * times; i++) {
          const begin = at.logs + i * entry.size, values = begin + entry.parts.gold.at;
          gold.set(bytes.subarray(values, values + fields), i * fields);
          place[i] = bytes[begin + entry.parts.place.at];
        }
        return { gold, place, steps: BigInt64Array.from(steps, BigInt), rows: at.n, times, fields };
      }

      // What the best table that never changes scores in episodes, [row]; it is learned once a condition.
      zeroOf(setting, replays, reference, own) {
        const { zeros, tables } = this, { fields, values } = this.described.constant;
        const key = [setting, replays ?? [], reference].map((one) => one.join()).join(";"), table = tables.get(key);
        let learned = { ...own, rows: 0, gold: new Uint8Array(0), place: new Uint8Array(0), steps: new BigInt64Array(0) };
        if (!table) {
          const at = this.played(setting, replays, reference, true);
          learned = this.truth(at, this.columns(at));
        }
        zeros.clear();
        const returned = zeros.room(16), params = zeros.room(setting.length);
        const given = [learned, own].flatMap(({ gold, place, steps, rows, times, fields: depth }) => [
          zeros.three({ start: zeros.room(gold.length), rows, columns: times, depth, size: 1 }),
          zeros.two({ start: zeros.room(place.length), rows, columns: times, size: 1 }),
          zeros.one(zeros.room(8 * steps.length), rows, 8),
        ]);
        const best = zeros.room(8 * (fields + 1)), found = zeros.room(8 * own.rows);
        const track = zeros.floats(own.rows, own.times), scratch = zeros.floats(3, fields), sums = zeros.floats(fields + 1, values);
        const { buffer } = zeros.memory, bytes = new Uint8Array(buffer); // it grows no more
        const START = 4; // of an array, as Numba passes one
        bytes.set(setting, params);
        [learned, own]
          .flatMap(({ gold, place, steps }) => [gold, place, new Uint8Array(steps.buffer)])
          .forEach((content, at) => bytes.set(content, Number(given[at][START])));
        if (table) new BigInt64Array(buffer, best, fields + 1).set(table);
        zeros.call(
          returned, returned + 8, params, ...given.flat(), ...zeros.one(best, fields + 1, 8), ...zeros.one(found, own.rows, 8),
          ...zeros.two(track), ...zeros.two(scratch), ...zeros.two(sums),
        );
        if (tables.size > MOST_TABLES) tables.clear();
        tables.set(key, new BigInt64Array(buffer, best, fields + 1).slice());
        return new Float64Array(buffer, found, own.rows).slice();
      }
    }

    // The bootstrap of sums over units, see `statistics.js`.
    class Resampler extends Module {
      run({ columns, ends, resamples, contrasted, level, family, reach, scratch, parts }) {
        const width = columns.length, n = columns[0].length, count = width / (contrasted ? 4 : 2);
        this.clear();
        const returned = this.room(16), given = this.floats(width, n), behind = this.room(8 * ends.length);
        const drawn = this.room(8 * n), whole = this.floats(width + 1, scratch);
        const draws = this.floats(width, resamples), found = this.floats(count, parts);
        const values = this.values(given);
        columns.forEach((column, at) => values.set(column, at * n));
        new BigInt64Array(this.memory.buffer, behind, ends.length).set(ends.map(BigInt));
        this.call(
          returned, returned + 8, ...this.two(given), ...this.one(behind, ends.length, 8), BigInt(contrasted), 0n, 0, level, family, reach,
          ...this.one(drawn, n, 8), ...this.two(whole), ...this.two(draws), ...this.two(found),
        );
        return { columns: { written: this.values(found).slice() } };
      }
    }

    const RESAMPLER = "resampler"; // among the machines
    const KINDS = {
      f8: { array: Float64Array, size: 8, read: (view, at) => view.getFloat64(at, true) },
      i1: { array: Int8Array, size: 1, read: (view, at) => view.getInt8(at) },
      u1: { array: Uint8Array, size: 1, read: (view, at) => view.getUint8(at) },
      i2: { array: Int16Array, size: 2, read: (view, at) => view.getInt16(at, true) },
      i4: { array: Int32Array, size: 4, read: (view, at) => view.getInt32(at, true) },
      i8: { array: BigInt64Array, size: 8, read: (view, at) => view.getBigInt64(at, true) },
      u8: { array: BigUint64Array, size: 8, read: (view, at) => view.getBigUint64(at, true) },
    };

    return {
      kinds: KINDS,
      resampler: RESAMPLER,
      make: async (bytes, described) => new Machine(await WebAssembly.compile(bytes), described),
      makeResampler: async (bytes) => new Resampler(await WebAssembly.compile(bytes)),
      add: async ({ name, bytes, described, constant }) => {
        const modules = await Promise.all([bytes, constant].filter(Boolean).map((one) => WebAssembly.compile(one)));
        machines[name] = name === RESAMPLER ? new Resampler(modules[0]) : new Machine(modules[0], described, modules[1]);
      },
      run: (tasks) => tasks.map(({ machine, task }) => machines[machine].run(task)),
    };
  }

  // What a worker does: it makes machines, and runs some tasks at each message.
  function serve(makeMachines) {
    const machines = makeMachines();
    onmessage = async ({ data }) => {
      try {
        if (data.kind === "machine") {
          await machines.add(data);
          postMessage({ number: data.number, result: true });
        } else {
          const result = machines.run(data.tasks);
          const arrays = result.flatMap(({ columns, logs }) => [...Object.values(columns), ...Object.values(logs ?? {}).map(({ values }) => values)]);
          postMessage({ number: data.number, result }, { transfer: arrays.map((array) => array.buffer) });
        }
      } catch (error) {
        postMessage({ number: data.number, fault: String(error.message || error) });
      }
    };
    postMessage({ kind: "hello" });
  }

  const ROWS = 256, LOGGED = 64; // seeds at a time: what is overtaken ends within milliseconds
  const WORKERS = 2;
  const HELLO = 3000; // milliseconds that a worker has to say that it is there
  const script = document.currentScript instanceof HTMLScriptElement && document.currentScript.src;
  const packed = {}, worlds = {}, loading = {};
  let common = null, hands = null;

  const isWhole = (value) => typeof value === "number" && Number.isInteger(value);
  const refuse = (sentence) => {
    throw new Error(sentence);
  };
  const shown = (value) => JSON.stringify(value) ?? String(value);
  function choose(what, name, known) {
    if (Object.hasOwn(known, name)) return known[name];
    return refuse(`There is no ${what} ${shown(name)}; there are ${Object.keys(known).join(", ")}.`);
  }
  const overtaken = () => new DOMException("Overtaken by a later run.", "AbortError");

  const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  async function unpacked(text) {
    const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  function available() {
    const asked = [globalThis.DecompressionStream, globalThis.BigInt64Array];
    return typeof WebAssembly === "object" && asked.every((one) => typeof one === "function");
  }

  // A world's script is loaded, its module unpacked, and its knobs read, once.
  function ready(world) {
    if (!loading[world]) {
      loading[world] = load(world);
      loading[world].catch(() => delete loading[world]); // another attempt may go better
    }
    return loading[world].then(() => undefined);
  }

  async function load(world) {
    if (!available()) refuse("This browser runs no WebAssembly, so the page keeps its figures as printed.");
    choose("world", world, common.worlds);
    if (!packed[world]) await fetchScript(world);
    if (packed[world].edition !== common.edition) refuse("The parts of this page are of two editions; reload it.");
    const parts = ["module", "knobs", "constant"].map((part) => unpacked(packed[world][part]));
    const [bytes, text, constant] = await Promise.all(parts);
    const knobs = JSON.parse(new TextDecoder().decode(text));
    const { entry, measures, byField, none, wait, stages, constant: room } = common, { episode, reads } = knobs;
    const described = { entry, measures, byField, none, wait, stages, episode, reads, constant: room };
    knobs.base = bytesOf(knobs.base);
    for (const group of knobs.groups) group.rows = group.rows.map(bytesOf);
    try {
      await giveAll({ name: world, bytes, described, constant });
    } catch (error) {
      refuse(`The engine could not start: ${error.message || error}`);
    }
    worlds[world] = { bytes, described, knobs, constant };
  }

  const giveAll = async (machine) => Promise.all((await allHands()).map((hand) => hand.ask({ kind: "machine", ...machine })));

  function fetchScript(world) {
    return new Promise((resolve, reject) => {
      const element = document.createElement("script");
      element.src = new URL(`page-engine-${world}.js?v=${common.edition}`, script || document.baseURI).href;
      const fault = new Error(`The engine of ${common.worlds[world]} could not be loaded.`);
      element.onload = () => (packed[world] ? resolve() : reject(fault));
      element.onerror = () => reject(fault);
      document.head.append(element);
    });
  }

  // Two workers, or this thread where a worker is refused.
  function allHands() {
    const length = Math.min(WORKERS, navigator.hardwareConcurrency || 1);
    hands ??= Promise.all(Array.from({ length }, hire)).then((found) => {
      const workers = found.filter(Boolean);
      return workers.length ? workers : [ownHand()];
    });
    return hands;
  }

  function hire() {
    return new Promise((resolve) => {
      let worker, address;
      const give = (hand) => {
        if (address) URL.revokeObjectURL(address);
        resolve(hand);
      };
      try {
        address = URL.createObjectURL(new Blob([`(${serve})(${makeMachines});`], { type: "text/javascript" }));
        worker = new Worker(address);
      } catch {
        give(null);
        return;
      }
      const waiting = new Map();
      const gone = () => new Error("The engine's worker has stopped; reload the page.");
      let number = 0, stopped = false;
      const late = setTimeout(() => give(null), HELLO);
      worker.onmessage = ({ data }) => {
        if (data.kind === "hello") {
          clearTimeout(late);
          give({
            ask: (message) =>
              new Promise((done, failed) => {
                if (stopped) failed(gone());
                waiting.set(++number, { done, failed });
                worker.postMessage({ ...message, number });
              }),
          });
          return;
        }
        const { done, failed } = waiting.get(data.number);
        waiting.delete(data.number);
        if (data.fault === undefined) done(data.result);
        else failed(new Error(data.fault));
      };
      worker.onerror = (event) => {
        event.preventDefault();
        clearTimeout(late);
        stopped = true;
        for (const { failed } of waiting.values()) failed(gone());
        waiting.clear();
        give(null);
      };
    });
  }

  // The page may scroll and answer in between; a timer would wait four milliseconds each time.
  function breath() {
    return new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(null);
    });
  }

  function ownHand() {
    const machines = makeMachines();
    return {
      ask: async (message) => {
        if (message.kind === "machine") return machines.add(message);
        await breath();
        return machines.run(message.tasks);
      },
    };
  }

  // Tasks wait in the order of their runs, those of patient runs until there are no others; those of an overtaken
  // run are left out. A hand that is idle is given the next tasks of one run, as many seeds as fit.
  const hurried = [], patient = [];
  const idle = new Set();
  let known = false;

  function nextTasks() {
    for (const one of [hurried, patient]) while (one.length && one[0].run.over) one.shift();
    const queue = hurried.length ? hurried : patient, tasks = [];
    for (let rows = 0; queue.length && (!tasks.length || queue[0].run === tasks[0].run); ) {
      rows += queue[0].size;
      if (tasks.length && rows > queue[0].run.atOnce) break;
      tasks.push(queue.shift());
    }
    return tasks;
  }

  async function work() {
    if (!known) {
      known = true;
      for (const hand of await allHands()) idle.add(hand);
    }
    for (const hand of [...idle]) {
      const given = nextTasks();
      if (!given.length) return;
      const [{ run }] = given;
      idle.delete(hand);
      hand
        .ask({ kind: "tasks", tasks: given.map(({ machine, task }) => ({ machine, task })) })
        .then((results) => results.forEach((result, i) => given[i].done(result)))
        .catch((error) => run.fail(error))
        .then(() => {
          idle.add(hand);
          return work();
        });
    }
  }

  // From here on: what a condition means, by the data that Python has written.

  const KEYS = [
    "world", "policy", "selector", "answered", "given", "replays", "weights", "regime", "horizon", "protocol", "profile",
    "budget", "threshold", "mutation_rate", "setting",
  ];

  function checkKeys(what, given, known) {
    for (const key of Object.keys(given)) if (!known.includes(key)) refuse(`A ${what} has no ${shown(key)}.`);
  }

  function protocolOf(text) {
    const [, name, rest = ""] = /^([^:]*):?(.*)$/s.exec(String(text));
    const switches = { ...choose("protocol", name, common.protocols) };
    for (const item of rest.split(",").filter(Boolean)) {
      const [key, value] = item.split("=");
      choose("protocol switch", key, switches);
      const accepted = common.knobs[key];
      if (!accepted.includes(value)) {
        refuse(`The protocol switch ${key} accepts ${accepted.join(" or ")}, not ${shown(value)}.`);
      }
      switches[key] = value;
    }
    return switches;
  }

  function named(given, what, known, fallback) {
    const { name = fallback, ...own } = typeof given === "string" ? { name: given } : given || {};
    const base = choose(what, name, known);
    checkKeys(what, own, Object.keys(base).filter((key) => key !== "title"));
    return [name, { ...base, ...own }];
  }

  // What a condition says: `values` of the knobs, `numbers` of the numeric ones, and its default seeds.
  function read(condition, policyName = null) {
    checkKeys("condition", condition, KEYS);
    const own = (value) => (policyName ? null : value) ?? common.own; // what is replayed is the policy itself
    const protocol = protocolOf(condition.protocol ?? "paper");
    const name = policyName ?? condition.policy ?? "simple";
    const policy = choose("policy", name, common.policies);
    const [regimeName, regime] = named(condition.regime, "regime", common.regimes, "S2");
    const [, profile] = named(condition.profile, "profile", common.profiles, "typical");
    const { selector, answered, given } = condition;
    const values = { ...protocol, policy: name, selector: own(selector), answered: own(answered), given: own(given) };
    for (const level of common.levels) values[level] = regime[level];
    const numbers = {};
    for (const [habit, value] of Object.entries(profile)) {
      if (!Object.hasOwn(common.ranges, habit)) values[habit] = value;
      else {
        const most = common.ranges[habit];
        const whole = !common.whole.includes(habit) || isWhole(value);
        const fits = typeof value === "number" && value >= 0 && value <= most && whole;
        numbers[habit] = fits ? value : refuse(`The profile's ${habit} ${shown(value)} is not in 0..${most}.`);
      }
    }
    for (const [less, more] of Object.entries(common.atMost)) {
      const exceeds = numbers[less] > numbers[more];
      if (exceeds) refuse(`The profile's ${less} ${numbers[less]} exceeds its ${more} ${numbers[more]}.`);
    }
    const horizon = condition.horizon ?? regime.horizon, longest = common.budgets.length - 1;
    const hasHorizon = isWhole(horizon) && horizon >= 1 && horizon <= longest;
    if (!hasHorizon) refuse(`The horizon ${shown(horizon)} is not in 1..${longest}.`);
    const budget = condition.budget ?? common.budgets[horizon];
    const hasBudget = isWhole(budget) && budget >= 0 && budget <= horizon;
    if (!hasBudget) refuse(`The budget ${shown(budget)} is not in 0..${horizon}.`);
    Object.assign(numbers, { horizon, budget });
    const threshold = (policyName && policy.threshold === null ? null : condition.threshold) ?? policy.threshold;
    if (threshold !== null) {
      if (policy.threshold === null) refuse(`The policy ${name} has no threshold.`);
      if (!Number.isFinite(threshold)) refuse(`The threshold ${shown(threshold)} is not a finite number.`);
      const scaled = protocol.threshold === common.protocols.paper.threshold ? "paper" : "released";
      numbers["policy.threshold"] = (threshold * policy.quarters[scaled]) / 4;
    }
    if (condition.mutation_rate !== undefined && condition.mutation_rate !== null) {
      const rate = condition.mutation_rate, fits = typeof rate === "number" && rate >= 0 && rate <= 1;
      numbers.mutation_rate = fits ? rate : refuse(`The mutation rate ${shown(rate)} is not in 0..1.`);
    }
    for (const [term, weight] of Object.entries((policyName ? null : condition.weights) || {})) {
      const terms = common.weights;
      if (!terms.includes(term)) refuse(`The score has no term ${shown(term)}; it has ${terms.join(", ")}.`);
      if (!Number.isFinite(weight)) refuse(`The weight of ${term} is not a finite number.`);
      numbers[`weights.${term}`] = weight;
    }
    return { values, numbers, seeds: common.seeds[regimeName][protocol.seeds], replays: own(condition.replays) === common.own ? policy.replays : condition.replays };
  }

  const WRITE = {
    i8: (view, at, value) => view.setBigInt64(at, BigInt(value), true),
    f8: (view, at, value) => view.setFloat64(at, value, true),
    index: (view, at, value) => view.setBigInt64(at, BigInt(value), true),
    level32: (view, at, value) => view.setBigUint64(at, BigInt(Math.floor(value * 2 ** 32 + 0.5)), true),
    level16: (view, at, value) => view.setBigInt64(at, BigInt(Math.floor(value * 2 ** 16 + 0.5)), true),
  };

  // The place of a value among those that a knob has.
  function placeOf(knob, value) {
    const place = common.knobs[knob].indexOf(value);
    return place < 0 ? refuse(`${knob} accepts ${common.knobs[knob].join(", ")}, not ${shown(value)}.`) : place;
  }

  // The engine's record of what was read: the base, with the bytes of groups of knobs, and each knob's own number.
  function settingOf(world, { values, numbers }, scoresAll) {
    const { knobs } = worlds[world];
    const bytes = knobs.base.slice();
    const all = { ...values, ...numbers, scores_all: scoresAll };
    for (const { by, spans, rows, of } of knobs.groups) {
      const combination = by.reduce((sum, knob) => sum * common.knobs[knob].length + placeOf(knob, all[knob]), 0);
      const row = rows[of[combination]];
      let from = 0;
      for (const [at, count] of spans) {
        bytes.set(row.subarray(from, from + count), at);
        from += count;
      }
    }
    const view = new DataView(bytes.buffer);
    for (const [knob, [at, how]] of Object.entries(knobs.numbers)) {
      if (all[knob] !== undefined) WRITE[how](view, at, how === "index" ? placeOf(knob, all[knob]) : all[knob]);
    }
    return bytes;
  }

  // A condition as a task of the machines: the world is ready.
  function taskOf(condition, logs) {
    const { world } = condition;
    if (condition.setting !== undefined) {
      const setting = bytesOf(condition.setting), size = worlds[world].knobs.base.length;
      if (setting.length !== size) refuse("The condition's setting is of another edition of the engine.");
      return { world, setting, replays: condition.replays ? bytesOf(condition.replays) : null, seeds: null };
    }
    const found = read(condition);
    const replays = found.replays && settingOf(world, read(condition, found.replays), false);
    return { world, setting: settingOf(world, found, Boolean(logs)), replays, seeds: found.seeds };
  }

  const MOST_SEEDS = 10_000_000n;

  // The seeds of a text as on the command line: "0:220" is 0..219, "7" one, commas join.
  function seedsIn(text) {
    const all = [];
    for (const item of text.split(",")) {
      const match = /^\s*([0-9]{1,19})(?::([0-9]{1,19}))?\s*$/.exec(item);
      if (!match) refuse(`The seeds ${shown(text)} are not FIRST:PAST or numbers.`);
      const first = BigInt(match[1]), past = match[2] === undefined ? first + 1n : BigInt(match[2]);
      if (past <= first || past - first > MOST_SEEDS) refuse(`The seeds ${shown(text)} are none, or too many.`);
      for (let seed = first; seed < past; seed++) all.push(seed);
    }
    return all;
  }

  // The first `most` seeds as the engine takes them; `own` is the first and the past of the condition's.
  function seedsOf(given, own, most = Infinity) {
    const isOwn = given === null || given === undefined || given === "default";
    let list = given;
    if (isOwn) {
      if (!own) refuse("This condition has no seeds of its own; give some.");
      list = Array.from({ length: own[1] - own[0] }, (_, i) => own[0] + i);
    } else if (typeof given === "string") list = seedsIn(given);
    else if (!Array.isArray(given) && !ArrayBuffer.isView(given)) refuse("Seeds are a text or an array.");
    const largest = BigInt(common.largestSeed), [from, past] = common.constant.reference;
    const isTaken = !isOwn && Array.from(list).some((seed) => seed >= from && seed < past);
    if (isTaken) refuse(`Seeds ${from} to ${past - 1} are kept for learning the zero; give others.`);
    return BigInt64Array.from(Array.from(list).slice(0, most), (seed) => {
      const whole = typeof seed === "bigint" || Number.isSafeInteger(seed);
      if (!whole) refuse(`The seed ${String(seed)} is not a whole number.`);
      if (seed < 0 || seed > largest) refuse(`The seed ${String(seed)} is not in 0..${largest}.`);
      return BigInt(seed);
    });
  }

  // A promise of what the hands make of tasks, in their order: `ofHands` of tasks {machine, task, size}, at most
  // `atOnce` in size a message.
  function ofHands(tasks, atOnce, { signal = null, isPatient = false, ondone = (/** @type {any} */ _) => {} }) {
    return new Promise((resolve, reject) => {
      const found = [], state = { over: false, fail: null, atOnce };
      let open = tasks.length;
      const abort = () => state.fail(overtaken());
      const end = (settle, value) => {
        if (state.over) return;
        state.over = true;
        signal?.removeEventListener("abort", abort);
        settle(value);
      };
      state.fail = (error) => end(reject, error);
      signal?.addEventListener("abort", abort);
      tasks.forEach((own, at) => {
        const done = (result) => {
          if (state.over) return;
          found[at] = result;
          open -= 1;
          ondone(own.size);
          if (open === 0) end(resolve, found);
        };
        (isPatient ? patient : hurried).push({ run: state, ...own, done });
      });
      if (open === 0) end(resolve, found);
      else work().catch(state.fail);
    });
  }

  async function run(conditions, seeds = null, options = {}) {
    const { signal = null, onprogress = null, logs = false, most = Infinity, zero = false, patient: isPatient = false } = options;
    if (signal?.aborted) throw overtaken();
    if (!Array.isArray(conditions)) refuse("Conditions are an array.");
    await Promise.all([...new Set(conditions.map(({ world }) => world))].map(ready));
    if (signal?.aborted) throw overtaken();
    const each = seeds && seeds.each, atOnce = logs ? LOGGED : ROWS;
    const reference = zero && seedsOf(null, common.constant.reference, zero === true ? Infinity : zero);
    const tasks = conditions.flatMap((condition, of) => {
      const { world, setting, replays, seeds: own } = taskOf(condition, logs === true), pieces = [];
      const all = seedsOf(each ? each[of] : seeds, own, most);
      for (let first = 0; first < all.length; first += atOnce) {
        const some = all.slice(first, first + atOnce);
        pieces.push({ of, machine: world, size: some.length, task: { setting, replays, seeds: some, logs, zero: reference } });
      }
      return pieces;
    });
    const total = tasks.reduce((sum, { size }) => sum + size, 0);
    let done = 0;
    const ondone = (size) => {
      done += size;
      onprogress?.({ episodes: done, of: total, share: done / total });
    };
    const found = await ofHands(tasks, atOnce, { signal, isPatient, ondone });
    const pieces = conditions.map(() => []);
    tasks.forEach(({ of }, at) => pieces[of].push(found[at]));
    return pieces.map((own) => (own.length ? joined(own) : {}));
  }

  function join(arrays) {
    if (arrays.length === 1) return arrays[0];
    const whole = new arrays[0].constructor(arrays.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const array of arrays) {
      whole.set(array, at);
      at += array.length;
    }
    return whole;
  }

  // The rows of a condition's pieces, one after the other.
  function joined(pieces) {
    const whole = {};
    for (const name of Object.keys(pieces[0].columns)) whole[name] = join(pieces.map(({ columns }) => columns[name]));
    if (pieces[0].logs) {
      whole.logs = {};
      for (const [name, { shape }] of Object.entries(pieces[0].logs)) {
        const values = join(pieces.map(({ logs }) => logs[name].values));
        whole.logs[name] = { values, shape: [whole.steps.length, ...shape.slice(1)] };
      }
    }
    return whole;
  }

  async function play(condition, seed) {
    return (await run([condition], [seed], { logs: true }))[0];
  }

  async function setting(condition, { scoresAll = false } = {}) {
    await ready(condition.world);
    return taskOf(condition, scoresAll).setting;
  }

  // Episodes that the page takes step by step, on this thread: propose, record, sense, decide, advance, again.
  class Episodes {
    constructor(machine, task, seeds) {
      this.machine = machine;
      this.rows = seeds.length;
      let schedules = null;
      if (task.replays) {
        const played = machine.lay(task.replays, seeds, { rows: this.rows, blocks: 1 });
        machine.take(machine.described.stages.whole, played);
        schedules = machine.probes(played);
      }
      this.at = machine.lay(task.setting, seeds, { rows: this.rows, blocks: this.rows, schedules });
      this.fields = Number(this.view().getBigInt64(this.at.setting + machine.described.reads.fields, true));
    }

    view() {
      const { buffer } = this.machine.memory; // another one when the memory has grown
      if (this.seen?.buffer !== buffer) this.seen = new DataView(buffer);
      return this.seen;
    }

    // Go on from where others stand, which are as many, of the same world.
    standAs(others) {
      const size = this.machine.described.episode.size * this.rows;
      const stand = new Uint8Array(others.machine.memory.buffer, others.at.episodes, size);
      new Uint8Array(this.machine.memory.buffer, this.at.episodes, size).set(stand);
      return this;
    }

    stage(name) {
      this.machine.take(this.machine.described.stages[name], this.at);
      return this;
    }

    // A number or an array of an episode as it stands, by its path: "sight.c", "over", "table.value".
    of(row, path) {
      const { size, parts } = this.machine.described.episode;
      const { at, type, shape } = parts[path] ?? refuse(`An episode has no number ${shown(path)}.`);
      const { array, read, size: width } = KINDS[type], start = this.at.episodes + row * size + at, view = this.view();
      if (!shape) return read(view, start);
      const values = new array(shape.reduce((product, count) => product * count, 1));
      for (let i = 0; i < values.length; i++) values[i] = read(view, start + i * width);
      return values;
    }

    begin() {
      return this.stage("begin");
    }

    propose() {
      return this.stage("propose");
    }

    // Record b_t and g_t; says whether any episode still runs.
    record() {
      this.stage("record");
      return Array.from({ length: this.rows }, (_, row) => this.of(row, "over")).some((over) => over === 0);
    }

    sense() {
      return this.stage("sense");
    }

    // Ask the condition's policy; the fields to probe or -1, [row].
    decide() {
      this.stage("decide");
      return new BigInt64Array(this.machine.memory.buffer, this.at.fields, this.rows).slice();
    }

    // Probe these fields, or act where it is -1.
    advance(fields) {
      if (fields !== undefined) {
        const none = BigInt(this.machine.described.none);
        const given = BigInt64Array.from(fields, (field) => BigInt(field ?? none));
        const fits = given.length === this.rows && given.every((field) => field >= none && field < BigInt(this.fields));
        if (!fits) refuse(`Fields to probe are one an episode, each -1 or in 0..${this.fields - 1}.`);
        new BigInt64Array(this.machine.memory.buffer, this.at.fields, this.rows).set(given);
      }
      return this.stage("advance");
    }

    // Run to the end, asking a rule at each step: episodes and row in, a field or -1 out.
    walk(rule) {
      for (;;) {
        this.propose();
        if (!this.record()) return this.measures();
        this.sense();
        this.advance(Array.from({ length: this.rows }, (_, row) => (this.of(row, "over") ? -1 : rule(this, row))));
      }
    }

    // The measures and logs of episodes that are over.
    measures() {
      this.stage("close").stage("measure");
      const columns = this.machine.columns(this.at);
      return { ...columns, logs: this.machine.logsOf(this.at, columns) };
    }
  }

  const { kinds: KINDS, resampler: RESAMPLER, make, makeResampler } = makeMachines();
  let resampler = null;

  // The bootstrap's machine on this thread, once each hand has one.
  function resampling() {
    resampler ??= (async () => {
      const bytes = await unpacked(common.statistics.module);
      await giveAll({ name: RESAMPLER, bytes });
      return makeResampler(bytes);
    })();
    return resampler;
  }

  async function resample(tasks, { signal = null, patient: isPatient = false } = {}) {
    await resampling();
    if (signal?.aborted) throw overtaken();
    return ofHands(tasks.map((task) => ({ machine: RESAMPLER, task, size: 1 })), 1, { signal, isPatient });
  }

  async function episodes(condition, seeds = null) {
    await ready(condition.world);
    const { bytes, described } = worlds[condition.world];
    const task = taskOf(condition, true);
    return new Episodes(await make(bytes, described), task, seedsOf(seeds, task.seeds)).begin();
  }

  const engine = {
    available, ready, run, play, episodes, setting, resampling, resample, breath, overtaken,
    names: () => common,
    protocol: protocolOf,
    describe: (found) => { common = found; },
    add: (world, found) => { packed[world] = found; },
  };
  globalThis.EnvProbe = { ...globalThis.EnvProbe, engine };
})();
