/** Paths and headers of the page's server. */

/** Path prefix of a reverse proxy; empty: none. */
export const serverPath = /^(.*?)\/console(?:\/|$)/.exec(globalThis.location?.pathname ?? "")?.[1] ?? "";

/** Reading, creating and ending the session. */
export const sessionPath = "/api/session/";

/** Other origins cannot send this header; without it the session cookie is ignored. */
export const csrfHeader = { "X-Flagkeep-Console": "1" };
