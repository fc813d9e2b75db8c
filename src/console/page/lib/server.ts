/** How the page's server is reached. */

/** What a reverse proxy puts before every path of the server; empty for none. */
export const serverPath = /^(.*?)\/console(?:\/|$)/.exec(globalThis.location?.pathname ?? "")?.[1] ?? "";

/** Who is signed in; signing in and out. */
export const sessionPath = "/api/session/";

/** A header that no other origin may send: a cookie without it counts nothing. */
export const ownHeader = { "X-Flagkeep-Console": "1" };
