globalThis.EnvProbe.plot = () => ({ root: document.createElement("div"), update() {}, close() {} });
