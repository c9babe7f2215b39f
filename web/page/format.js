// Numbers and times as people read them.

/** `1:02:03`-like durations in words: `1 h 2 min`. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return '–';
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function bytes(count) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let unit = 0;
  let value = count;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** Filament, given in millimetres. */
export const metres = (millimetres) => (Number.isFinite(millimetres) ? `${(millimetres / 1000).toFixed(2)} m` : '–');

/** A moment, given in seconds since 1970. */
export function moment(seconds) {
  if (!seconds) return '–';
  const date = new Date(seconds * 1000);
  const today = date.toDateString() === new Date().toDateString();
  const time = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  return today ? time : `${date.toLocaleDateString([], { day: 'numeric', month: 'short', year: 'numeric' })}, ${time}`;
}

export const clock = (date) => date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });

export const fixed = (value, digits) => (Number.isFinite(value) ? value.toFixed(digits) : '–');

/** `heater_bed` and `temperature_sensor chamber` as a person would say it. */
export function sensorName(object) {
  const name = object.includes(' ') ? object.slice(object.indexOf(' ') + 1) : object;
  const words = { heater_bed: 'Bed', extruder: 'Hotend', mcu: 'MCU', host_cpu: 'Host CPU' };
  if (words[name]) return words[name];
  const spaced = name.replace(/^extruder(\d+)$/, 'hotend $1').replace(/_/g, ' ');
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** The last part of a path. */
export const baseName = (path) => path.slice(path.lastIndexOf('/') + 1);
/** Everything before it. */
export const folderOf = (path) => (path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '');

const STATES = {
  completed: 'Completed', cancelled: 'Cancelled', error: 'Failed', in_progress: 'Printing', klippy_shutdown: 'Stopped', klippy_disconnect: 'Connection lost',
  fwhost_shutdown: 'Stopped', fwhost_disconnect: 'Connection lost', server_exit: 'Server ended', interrupted: 'Interrupted',
};
export const jobState = (state) => STATES[state] ?? state.replace(/_/g, ' ');
