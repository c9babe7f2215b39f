// What is known about the printer, kept up to date by notifications.

const POLL = 2000;
/** Seconds of temperatures that are kept for the chart. */
export const HISTORY_SECONDS = 1200;
const ALWAYS = ['webhooks', 'print_stats', 'virtual_sdcard', 'display_status', 'toolhead', 'gcode_move', 'fan', 'idle_timeout', 'heaters'];

/** Emits `change` (state or values), `ready` (a new subscription stands) and `file` (another file is printed). */
export class Printer extends EventTarget {
  /** `connecting`, `offline`, or the state of the firmware host: `disconnected`, `startup`, `ready`, `error`, `shutdown`. */
  state = 'connecting';
  message = '';
  name = '';
  /** Objects by name, as subscribed. */
  status = {};
  /** Names of everything that has a temperature. */
  sensors = [];
  /** Those that can be heated. */
  heaters = [];
  /** Past temperatures and targets by sensor, oldest first, one a second. */
  past = {};
  /** Metadata of the file that is or was printed last. */
  file = null;
  #connection;
  #poll = 0;
  #lastSample = 0;
  #fileName = '';

  constructor(connection) {
    super();
    this.#connection = connection;
    connection.on('notify_status_update', (changes) => this.#merge(changes));
    connection.on('notify_fwhost_ready', () => this.synchronise());
    connection.on('notify_fwhost_shutdown', () => this.synchronise());
    connection.on('notify_fwhost_disconnected', () => this.synchronise());
    setInterval(() => this.#sample(), 1000);
  }

  /** Everything anew, after connecting or when the firmware host changed its state. */
  async synchronise() {
    clearTimeout(this.#poll);
    if (!this.#connection.isOpen) return;
    try {
      const info = await this.#connection.call('server.info');
      const printer = info.fwhost_connected ? await this.#connection.call('printer.info').catch(() => null) : null;
      this.name = printer?.hostname ?? this.name;
      this.message = printer?.state_message ?? '';
      const was = this.state;
      this.state = info.fwhost_state;
      if (this.state === 'ready' || this.state === 'shutdown') await this.#subscribe();
      else this.#again();
      if (was !== this.state) this.dispatchEvent(new Event('ready'));
    } catch {
      this.#again();
    }
    this.#changed();
  }

  #again() {
    clearTimeout(this.#poll);
    this.#poll = setTimeout(() => this.synchronise(), POLL);
  }

  offline() {
    clearTimeout(this.#poll);
    this.state = 'offline';
    this.#changed();
  }

  async #subscribe() {
    const { status: { heaters } } = await this.#connection.call('printer.objects.query', { objects: { heaters: null } });
    this.heaters = heaters?.available_heaters ?? [];
    this.sensors = [...new Set([...this.heaters, ...(heaters?.available_sensors ?? [])])].sort((a, b) => rank(a) - rank(b));
    const objects = Object.fromEntries([...ALWAYS, ...this.sensors].map((name) => [name, null]));
    const [{ status }, store] = await Promise.all([
      this.#connection.call('printer.objects.subscribe', { objects }),
      this.#connection.call('server.temperature_store'),
    ]);
    this.status = {};
    this.past = Object.fromEntries(this.sensors.map((name) => [name, {
      temperatures: [...(store[name]?.temperatures ?? [])].slice(-HISTORY_SECONDS),
      targets: [...(store[name]?.targets ?? [])].slice(-HISTORY_SECONDS),
    }]));
    this.#merge(status);
  }

  #merge(changes) {
    for (const [name, fields] of Object.entries(changes)) this.status[name] = { ...this.status[name], ...fields };
    const webhooks = changes.webhooks?.state;
    if (webhooks && webhooks !== this.state && this.state !== 'offline') this.synchronise();
    this.#followFile();
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }

  /** One point of the chart a second, as the server keeps them. */
  #sample() {
    const now = Date.now();
    if (this.state !== 'ready' || now - this.#lastSample < 900) return;
    this.#lastSample = now;
    for (const name of this.sensors) {
      const { temperature, target } = this.status[name] ?? {};
      const past = this.past[name];
      if (!past || temperature === undefined) continue;
      push(past.temperatures, temperature);
      if (target !== undefined) push(past.targets, target);
    }
  }

  async #followFile() {
    const name = this.status.print_stats?.filename ?? '';
    if (name === this.#fileName) return;
    this.#fileName = name;
    this.file = null;
    if (name) this.file = await this.#connection.call('server.files.metadata', { filename: name }).catch(() => null);
    this.dispatchEvent(new Event('file'));
    this.#changed();
  }

  /** State of the print, in one word of `print_stats`. */
  get job() {
    return this.status.print_stats?.state ?? 'standby';
  }

  get isPrinting() {
    return this.job === 'printing' || this.job === 'paused';
  }

  /** From 0 to 1: how much of the moves of the file is done. */
  get progress() {
    const { file_position: position = 0, progress = 0 } = this.status.virtual_sdcard ?? {};
    if (this.job === 'complete') return 1;
    const { gcode_start_byte: start, gcode_end_byte: end } = this.file ?? {};
    if (!(end > start) || !position) return progress;
    return Math.min(1, Math.max(0, (position - start) / (end - start)));
  }

  /** Seconds left: what the slicer said at the beginning, what the pace says towards the end. */
  get secondsLeft() {
    const done = this.progress;
    const spent = this.status.print_stats?.print_duration ?? 0;
    const byPace = done > 0.005 ? (spent * (1 - done)) / done : null;
    const estimated = this.file?.estimated_time;
    if (!estimated) return byPace;
    const bySlicer = Math.max(0, estimated - spent);
    return byPace === null ? bySlicer : bySlicer * (1 - done) + byPace * done;
  }

  script(script) {
    return this.#connection.call('printer.gcode.script', { script });
  }

  setTarget(heater, target) {
    const name = heater.includes(' ') ? heater.slice(heater.indexOf(' ') + 1) : heater;
    return this.script(`SET_HEATER_TEMPERATURE HEATER=${name} TARGET=${target}`);
  }
}

function push(list, value) {
  list.push(value);
  if (list.length > HISTORY_SECONDS) list.shift();
}

/** Hotends first, then the bed, then whatever only measures. */
function rank(name) {
  if (name.startsWith('extruder')) return 0;
  if (name === 'heater_bed') return 1;
  return name.startsWith('heater_generic') ? 2 : 3;
}
