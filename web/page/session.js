// Who is logged in: tokens, the login form, and requests over HTTP that carry the token.

import { h, attempt } from './dom.js';
import { RpcError } from './connection.js';

const KEY = 'bowsprit.session';

export class Session {
  #connection;
  #tokens;

  constructor(connection) {
    this.#connection = connection;
    try { this.#tokens = JSON.parse(localStorage.getItem(KEY)); } catch { this.#tokens = null; }
  }

  get isLoggedIn() {
    return Boolean(this.#tokens);
  }

  #keep(tokens) {
    this.#tokens = tokens;
    try {
      if (tokens) localStorage.setItem(KEY, JSON.stringify(tokens));
      else localStorage.removeItem(KEY);
    } catch { /* private browsing: lasts until the page closes */ }
  }

  /** Says who we are on a fresh connection; asks for a login when that is needed. */
  async identify() {
    const client = { client_name: 'bowsprit', version: '1', type: 'web', url: location.origin };
    const identify = (more = {}) => this.#connection.call('server.connection.identify', { ...client, ...more });
    const token = await this.token();
    try {
      await identify(token ? { access_token: token } : {});
    } catch (error) {
      if (!(error instanceof RpcError && error.isUnauthorized)) throw error;
      this.#keep(null);
      // Without a token the address may do.
      if (token && (await identify().then(() => true, () => false))) return;
      await this.#ask();
      await identify();
    }
  }

  /** An access token that is good for the next minute, or null for those who need none. */
  async token() {
    if (!this.#tokens) return null;
    if (expiry(this.#tokens.token) > Date.now() / 1000 + 60) return this.#tokens.token;
    try {
      const { token } = await this.#connection.call('access.refresh_jwt', { refresh_token: this.#tokens.refresh_token });
      this.#keep({ ...this.#tokens, token });
      return token;
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      this.#keep(null);
      return null;
    }
  }

  /** Headers that a request over HTTP needs. */
  async headers() {
    const token = await this.token();
    return token ? { Authorization: `Bearer ${token}` } : {};
  }

  /** An address that a browser can open by itself: with a token for one use where one is needed. */
  async address(path) {
    if (!this.#tokens) return path;
    const token = await this.#connection.call('access.oneshot_token');
    return `${path}?token=${encodeURIComponent(token)}`;
  }

  async logOut() {
    await attempt(() => this.#connection.call('access.logout'));
    this.#keep(null);
    this.#connection.restart();
  }

  /** Shows the login form until somebody got in or the connection ended. */
  #ask() {
    const { promise, resolve, reject } = deferred();
    const problem = h('p', { class: 'problem', role: 'alert' });
    const name = h('input', { id: 'username', autocomplete: 'username', required: true, autocapitalize: 'none', spellcheck: 'false' });
    const password = h('input', { id: 'password', type: 'password', autocomplete: 'current-password', required: true });
    const source = h('select', { id: 'source' });
    const sourceRow = h('div', { class: 'field', hidden: true }, h('label', { for: 'source' }, 'Account'), source);
    const submit = h('button', { class: 'primary' }, 'Log in');
    const dialog = h('dialog', { class: 'login', 'aria-labelledby': 'login-title' },
      h('form', {
        onsubmit: async (event) => {
          event.preventDefault();
          submit.disabled = true;
          problem.textContent = '';
          try {
            const params = { username: name.value, password: password.value };
            if (source.value) params.source = source.value;
            const { token, refresh_token } = await this.#connection.call('access.login', params);
            this.#keep({ token, refresh_token });
            close();
            resolve();
          } catch (error) {
            problem.textContent = error.message;
            password.select();
          } finally {
            submit.disabled = false;
          }
        },
      },
      h('h2', { id: 'login-title' }, 'Log in'),
      h('p', { class: 'muted' }, 'This printer wants to know who you are. Its owner can let whole networks in without a login: trusted_clients in the section [authorization] of the configuration.'),
      h('div', { class: 'field' }, h('label', { for: 'username' }, 'Name'), name),
      h('div', { class: 'field' }, h('label', { for: 'password' }, 'Password'), password),
      sourceRow, problem, h('div', { class: 'row end' }, submit)));
    dialog.addEventListener('cancel', (event) => event.preventDefault());
    const ended = () => { close(); reject(new Error('The connection to the server was interrupted')); };
    const close = () => {
      this.#connection.removeEventListener('close', ended);
      dialog.close();
      dialog.remove();
    };
    this.#connection.addEventListener('close', ended);
    document.body.append(dialog);
    dialog.showModal();
    this.#connection.call('access.info').then((info) => {
      source.append(...info.available_sources.map((value) => h('option', { value }, value)));
      source.value = info.default_source;
      sourceRow.hidden = info.available_sources.length < 2;
    }, () => {});
    return promise;
  }
}

function deferred() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

/** When a token ends, in seconds since 1970; 0 for what is no token. */
function expiry(token) {
  try {
    return JSON.parse(atob(token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/'))).exp;
  } catch {
    return 0;
  }
}
