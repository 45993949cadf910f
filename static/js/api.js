/** JSON and bytes over HTTP, with the CSRF token and errors that say what happened. */

const WORDS = {
  0: "The server cannot be reached.",
  401: "Your session has ended. Log in again.",
  403: "You are not allowed to do this.",
  404: "This is not there (any more).",
  500: "The server failed. Its log has the details.",
};

/** An answer that was not a success; `status` is 0 when there was no answer at all. */
export class ApiError extends Error {
  constructor(status, body) {
    super(sentence(status, body));
    this.status = status;
    this.body = body ?? {};
  }
}

function sentence(status, body) {
  const said = body?.message ?? body?.error ?? body?.detail;
  if (typeof said === "string" && said) return said;
  return WORDS[status] ?? `The server answered ${status}.`;
}

export class Api {
  #base;
  #token;
  #fetch;

  constructor(base, token, fetcher = (...args) => fetch(...args)) {
    this.#base = base;
    this.#token = token;
    this.#fetch = fetcher;
  }

  /** GET `path` (below the base) with query `params`; undefined ones are left out. */
  async get(path, params = {}, { signal } = {}) {
    const response = await this.#request(this.#url(path, params), { signal });
    return response.json();
  }

  async bytes(path, { signal } = {}) {
    const response = await this.#request(this.#url(path), { signal });
    return response.arrayBuffer();
  }

  async post(path, body) {
    const response = await this.#request(this.#url(path), {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-CSRFToken": this.#token },
      body: JSON.stringify(body),
    });
    return response.json();
  }

  #url(path, params = {}) {
    const query = new URLSearchParams(
      Object.entries(params).filter(([, value]) => value !== undefined && value !== ""),
    ).toString();
    return this.#base + path + (query ? `?${query}` : "");
  }

  async #request(url, options) {
    let response;
    try {
      response = await this.#fetch(url, { credentials: "same-origin", ...options });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0);
    }
    if (response.ok) return response;
    throw new ApiError(response.status, await bodyOf(response));
  }
}

async function bodyOf(response) {
  try {
    return await response.json();
  } catch {
    return {};
  }
}
