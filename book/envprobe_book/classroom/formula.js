// A formula of a policy in Python's expression syntax, as the page reads it.
//
// A classic script; it adds `EnvProbe.formula`:
//
//   parse(text)    {value(look)}: the number that a formula gives for what is seen of one field, an object with
//                  a number for each of `quantities`; a fault of the text, or of the numbers, is an Error of
//                  one sentence
//   quantities     what a formula may name: `byField`, of each field, and `byStep`, of the step
//
// The text is cut into known signs and parsed by hand; nothing of it is ever run as a script. All numbers are
// Float64 as in Python, and only what both languages round alike is offered: the text is a Python expression, too.
(() => {
  "use strict";

  const BY_FIELD = ["c", "s", "u", "d", "staleness", "confidence"];
  const BY_STEP = ["step", "horizon", "used", "budget"];
  const QUANTITIES = [...BY_FIELD, ...BY_STEP];
  const FUNCTIONS = { min: "two or more values", max: "two or more values", abs: "one value", sqrt: "one value" };
  const TRUTHS = { True: 1, False: 0 };
  const WORDS = ["and", "or", "not", "if", "else"];
  const LONGEST = 500, MOST_SIGNS = 150, MOST_BRACKETS = 20; // characters; signs; brackets open at once
  const LARGEST_NUMBER = 1e6, LARGEST_EXPONENT = 8;
  const SHOWN = 200; // characters of a reader's text in a message
  const SIGN =
    /((?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|([A-Za-z_][A-Za-z0-9_]*)|(\*\*|\/\/|<=|>=|==|!=|[-+*/%<>(),])/y;
  const BLANKS = " \t\r\n";
  const ACCEPTED =
    "accepted are numbers, brackets, + - * / % **, comparisons, and, or, not, `x if y else z`, " +
    `${Object.keys(FUNCTIONS).join(", ")} and the names ${QUANTITIES.join(", ")}`;

  const refuse = (sentence) => {
    throw new Error(sentence);
  };
  const unreadable = (text) => refuse(`the formula ${shown(text)} cannot be read; ${ACCEPTED}`);

  // A text as a message names it, in one line and cut; characters are counted as Python counts them.
  function shown(text) {
    const line = [...text.replace(/[ \t\r\n]+/g, " ")];
    return line.length <= SHOWN ? `\`${line.join("")}\`` : `\`${line.slice(0, SHOWN).join("")}…\``;
  }

  // reading

  function signsOf(text) {
    if (typeof text !== "string") refuse("a formula is a text");
    const length = [...text].length;
    if (length > LONGEST) refuse(`the formula has ${length} characters; at most ${LONGEST} are accepted: ${shown(text)}`);
    const signs = [];
    let at = 0;
    while (at < text.length) {
      if (BLANKS.includes(text[at])) {
        at++;
        continue;
      }
      SIGN.lastIndex = at;
      const found = SIGN.exec(text);
      if (!found) refuse(`the formula has the character ${shown(String.fromCodePoint(text.codePointAt(at)))}; ${ACCEPTED}`);
      signs.push(signOf(found[1] !== undefined ? "number" : found[2] !== undefined ? "name" : "mark", found[0]));
      at = SIGN.lastIndex;
    }
    if (signs.length === 0) refuse(`the formula is empty; ${ACCEPTED}`);
    if (signs.length > MOST_SIGNS) {
      refuse(`the formula has ${signs.length} numbers, names and operators; at most ${MOST_SIGNS} are accepted: ${shown(text)}`);
    }
    checkOrder(signs, text);
    return signs;
  }

  function signOf(kind, text) {
    if (kind === "number" && !(Number(text) <= LARGEST_NUMBER)) {
      refuse(`the number ${shown(text)} is too large; numbers up to 1000000 are accepted`);
    }
    if (text === "//") refuse("the formula has `//`; / divides, and a % b is what is left over");
    if (kind === "name") {
      if (Object.hasOwn(FUNCTIONS, text)) kind = "function";
      else if (WORDS.includes(text)) kind = "word";
      else if (!QUANTITIES.includes(text) && !Object.hasOwn(TRUTHS, text)) {
        refuse(`the formula has the name ${shown(text)}; ${ACCEPTED}`);
      }
    }
    const beginsValue = ["number", "name", "function"].includes(kind) || text === "(" || text === "not";
    const endsValue = ["number", "name"].includes(kind) || text === ")";
    return { kind, text, beginsValue, endsValue };
  }

  // Refuse what the grammar would refuse as well, in words that say where.
  function checkOrder(signs, text) {
    let open = 0;
    signs.forEach((sign, place) => {
      const after = signs[place + 1];
      open += Number(sign.text === "(") - Number(sign.text === ")");
      if (open < 0) refuse(`a bracket is closed that was not opened: ${shown(text)}`);
      if (open > MOST_BRACKETS) refuse(`more than ${MOST_BRACKETS} brackets are open at once: ${shown(text)}`);
      if (sign.kind === "function" && after?.text !== "(") {
        refuse(`${shown(sign.text)} is a function: write ${sign.text}(…) with ${FUNCTIONS[sign.text]}`);
      }
      if (sign.endsValue && after?.beginsValue) {
        refuse(`an operator such as + or * is missing between ${shown(sign.text)} and ${shown(after.text)}`);
      }
    });
    if (open) refuse(`a bracket is not closed: ${shown(text)}`);
  }

  // Reads the signs by Python's grammar, loosest first. Each part is {value}, a written whole number also {whole}.
  class Reader {
    constructor(text) {
      this.text = text;
      this.signs = signsOf(text);
      this.at = 0;
      this.faults = []; // what the meaning refuses, for which Python looks after the grammar
    }

    get next() {
      return this.signs[this.at]?.text;
    }

    take(...texts) {
      return texts.includes(this.next) ? this.signs[this.at++].text : null;
    }

    need(text) {
      if (!this.take(text)) unreadable(this.text);
    }

    whole() {
      const read = this.choice();
      if (this.at < this.signs.length) unreadable(this.text);
      return read;
    }

    choice() {
      const then = this.either();
      if (!this.take("if")) return then;
      const asked = this.either();
      this.need("else");
      const otherwise = this.choice();
      return { value: (look) => (asked.value(look) !== 0 ? then : otherwise).value(look) };
    }

    // `or` gives the first operand that is not 0, `and` the first that is, else the last.
    decided(word, wanted, part) {
      const parts = [part()];
      while (this.take(word)) parts.push(part());
      if (parts.length === 1) return parts[0];
      const last = parts.pop();
      return {
        value: (look) => {
          for (const one of parts) {
            const found = one.value(look);
            if ((found !== 0) === wanted) return found;
          }
          return last.value(look);
        },
      };
    }

    either() {
      return this.decided("or", true, () => this.both());
    }

    both() {
      return this.decided("and", false, () => this.negated());
    }

    negated() {
      if (!this.take("not")) return this.compared();
      const inner = this.negated();
      return { value: (look) => Number(inner.value(look) === 0) };
    }

    compared() {
      const first = this.sum(), links = [];
      for (let sign; (sign = this.take(...Object.keys(COMPARED))); ) links.push([COMPARED[sign], this.sum()]);
      if (links.length === 0) return first;
      return {
        value: (look) => {
          let left = first.value(look);
          for (const [compare, part] of links) {
            const right = part.value(look);
            if (!compare(left, right)) return 0;
            left = right;
          }
          return 1;
        },
      };
    }

    joined(signs, part) {
      let read = part();
      for (let sign; (sign = this.take(...signs)); ) {
        const first = read, second = part(), combine = OPERATORS[sign];
        read = { value: (look) => combine(first.value(look), second.value(look)) };
      }
      return read;
    }

    sum() {
      return this.joined(["+", "-"], () => this.product());
    }

    product() {
      return this.joined(["*", "/", "%"], () => this.signed());
    }

    signed() {
      const sign = this.take("+", "-");
      if (!sign) return this.powered();
      const inner = this.signed();
      return sign === "+" ? { value: inner.value } : { value: (look) => -inner.value(look) };
    }

    powered() {
      const base = this.single();
      if (!this.take("**")) return base;
      const before = this.faults.length;
      const { whole } = this.signed();
      this.faults.length = before; // all that is asked of an exponent is that it is a small whole number
      if (!(whole <= LARGEST_EXPONENT)) {
        this.faults.push(`after ** a whole number from 0 to ${LARGEST_EXPONENT} is accepted`);
      }
      return { value: (look) => power(base.value(look), whole) };
    }

    single() {
      const sign = this.signs[this.at++] ?? unreadable(this.text);
      if (sign.kind === "number") {
        const constant = Number(sign.text);
        return { value: () => constant, whole: /^[0-9]+$/.test(sign.text) ? constant : undefined };
      }
      if (Object.hasOwn(TRUTHS, sign.text)) return { value: () => TRUTHS[sign.text] };
      if (sign.kind === "name") return { value: (look) => look[sign.text] };
      if (sign.kind === "function") return this.call(sign.text);
      if (sign.text !== "(") unreadable(this.text);
      const inner = this.choice();
      this.need(")");
      return inner;
    }

    call(name) {
      const parts = [];
      this.need("(");
      while (this.next !== ")") {
        parts.push(this.choice());
        if (!this.take(",")) break; // Python allows a comma behind the last
      }
      this.need(")");
      const fits = FUNCTIONS[name] === "one value" ? parts.length === 1 : parts.length > 1;
      if (!fits) this.faults.push(`\`${name}\` takes ${FUNCTIONS[name]}, here ${parts.length}`);
      return { value: (look) => CALLED[name](...parts.map((part) => part.value(look))) };
    }
  }

  // computing

  function finite(value) {
    return Number.isFinite(value) ? value : refuse("the formula gives a number that is too large to compute with");
  }

  function quotient(a, b) {
    if (b === 0) refuse("the formula divides by zero: guard the division, as in c / s if s > 0 else 0");
    return finite(a / b);
  }

  // As Python's %: the sign of b, also of a zero.
  function remainder(a, b) {
    if (b === 0) refuse("the formula takes a remainder by zero: guard it, as in c % s if s > 0 else 0");
    const rest = a % b;
    if (rest === 0) return b < 0 ? -0 : 0;
    return rest < 0 !== b < 0 ? rest + b : rest;
  }

  function root(a) {
    if (a < 0) refuse("the formula takes the square root of a number below 0; use max(0, …) in it");
    return Math.sqrt(a);
  }

  function power(a, exponent) {
    let product = 1;
    for (let i = 0; i < exponent; i++) product = finite(product * a);
    return product;
  }

  // Of equal values the first, as in Python: Math.min would tell the two zeros apart.
  const best = (better) => (...values) => values.reduce((kept, value) => (better(value, kept) ? value : kept));

  const OPERATORS = {
    "+": (a, b) => finite(a + b),
    "-": (a, b) => finite(a - b),
    "*": (a, b) => finite(a * b),
    "/": quotient,
    "%": remainder,
  };
  const COMPARED = {
    "<": (a, b) => a < b,
    "<=": (a, b) => a <= b,
    ">": (a, b) => a > b,
    ">=": (a, b) => a >= b,
    "==": (a, b) => a === b,
    "!=": (a, b) => a !== b,
  };
  const CALLED = { min: best((a, b) => a < b), max: best((a, b) => a > b), abs: Math.abs, sqrt: root };

  function parse(text) {
    const reader = new Reader(text);
    const { value } = reader.whole();
    if (reader.faults.length) refuse(reader.faults[0]);
    return { value };
  }

  const formula = { parse, quantities: { byField: BY_FIELD, byStep: BY_STEP } };
  globalThis.EnvProbe = Object.assign(globalThis.EnvProbe ?? {}, { formula });
})();
