// The websocket: requests with answers, notifications, and coming back by itself.

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10000;
/** A connection on which nothing answers for this long is given up. */
const SILENCE = 15000;

/** An error that the server answered with. */
export class RpcError extends Error {
  constructor({ code, message }) {
    super(message);
    this.code = code;
  }

  get isUnauthorized() {
    return this.code === 401 || (this.code === -32602 && this.message === 'Unauthorized');
  }
}

/** Emits `open`, `close` and `notify:<method>` with the parameters in `detail`. */
export class Connection extends EventTarget {
  #socket = null;
  #waiting = new Map();
  #nextId = 1;
  #pause = FIRST_PAUSE;
  #timer = 0;
  #heartbeat = 0;

  constructor() {
    super();
    addEventListener('online', () => this.connect());
    document.addEventListener('visibilitychange', () => { if (!document.hidden) this.connect(); });
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Connects now, unless that is so already. */
  connect() {
    if (this.#socket) return;
    clearTimeout(this.#timer);
    const url = new URL('websocket', document.baseURI);
    url.protocol = url.protocol.replace('http', 'ws');
    const socket = new WebSocket(url);
    this.#socket = socket;
    socket.onopen = () => {
      this.#heartbeat = setInterval(() => this.#beat(), SILENCE);
      this.dispatchEvent(new Event('open'));
    };
    socket.onmessage = (event) => this.#receive(JSON.parse(event.data));
    socket.onclose = () => this.#closed(socket);
  }

  /** The connection is good: the next interruption starts with a short pause again. */
  settled() {
    this.#pause = FIRST_PAUSE;
  }

  /** Closes; a new connection follows after the usual pause, which grows until `settled` is called. */
  restart() {
    this.#socket?.close();
  }

  #closed(socket) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    clearInterval(this.#heartbeat);
    for (const { reject } of this.#waiting.values()) reject(new Error('The connection to the server was interrupted'));
    this.#waiting.clear();
    this.#timer = setTimeout(() => this.connect(), this.#pause * (0.75 + Math.random() / 2));
    this.#pause = Math.min(Math.max(this.#pause, FIRST_PAUSE) * 1.7, LONGEST_PAUSE);
    this.dispatchEvent(new Event('close'));
  }

  async #beat() {
    const socket = this.#socket;
    const late = setTimeout(() => { socket.close(); this.#closed(socket); }, SILENCE - 1000);
    try { await this.call('server.info'); } catch { /* an error is an answer, too */ }
    clearTimeout(late);
  }

  #receive(message) {
    for (const item of Array.isArray(message) ? message : [message]) {
      if (item.method) {
        this.dispatchEvent(new CustomEvent(`notify:${item.method}`, { detail: item.params ?? [] }));
        continue;
      }
      const waiting = this.#waiting.get(item.id);
      this.#waiting.delete(item.id);
      if (item.error) waiting?.reject(new RpcError(item.error));
      else waiting?.resolve(item.result);
    }
  }

  /** Calls a method; the promise fails with an RpcError, or with an Error when the connection ends first. */
  call(method, params) {
    if (!this.isOpen) return Promise.reject(new Error('Not connected to the server'));
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  }

  /** Listens to a notification. */
  on(method, handler) {
    this.addEventListener(`notify:${method}`, (event) => handler(...event.detail));
  }
}
