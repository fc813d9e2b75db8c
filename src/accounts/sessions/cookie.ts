/**
 * The session cookie, and which requests may use it.
 *
 * Browsers send cookies with requests of any page. So it requires a header that other origins cannot send without a
 * preflight, and the browser's own origin headers must not contradict.
 */

import { consoleHeader } from "../../http/cors.ts";
import type { Metadata } from "../metadata.ts";
import { listOrganizations } from "../organizations.ts";
import { type AuthenticatedSession, findSession } from "./sessions.ts";

const cookieLengthMax = 8_192;
const maxAgeSeconds = 30 * 86_400;

/**
 * Whether a request comes from the console: it has the header, and the browser does not contradict.
 *
 * @param baseUrl where clients reach this server.
 */
export function isFromConsole(request: Request, baseUrl: string | undefined): boolean {
  if (request.headers.get(consoleHeader) !== "1") return false;
  const site = request.headers.get("sec-fetch-site");
  if (site !== null && site !== "same-origin") return false;
  const origin = request.headers.get("origin");
  return origin === null || isOwnOrigin(origin, request, baseUrl);
}

/** Proxies may change the scheme, so host and port are compared; a scheme's default port counts as absent. */
function isOwnOrigin(origin: string, request: Request, baseUrl: string | undefined): boolean {
  const requested = URL.parse(origin);
  if (requested === null || !/^https?:$/.test(requested.protocol)) return false;
  if (baseUrl !== undefined && URL.parse(baseUrl)?.origin === requested.origin) return true;
  const host = request.headers.get("host") ?? new URL(request.url).host;
  return URL.parse(`${requested.protocol}//${host}`)?.host === requested.host;
}

/** The session of the cookie in a request of the console. */
export function getSession(
  metadata: Metadata,
  request: Request,
  baseUrl: string | undefined,
  now: Date,
): AuthenticatedSession | undefined {
  return isFromConsole(request, baseUrl) ? sessionInCookie(metadata, request, baseUrl, now) : undefined;
}

/** Whether a request for the page itself comes from a signed-in user. Grants nothing: navigation carries no header. */
export function isSignedIn(
  metadata: Metadata,
  request: Request,
  baseUrl: string | undefined,
  now: Date,
): boolean {
  return sessionInCookie(metadata, request, baseUrl, now) !== undefined;
}

function sessionInCookie(
  metadata: Metadata,
  request: Request,
  baseUrl: string | undefined,
  now: Date,
): AuthenticatedSession | undefined {
  const cookies = request.headers.get("cookie");
  if (cookies === null || cookies.length > cookieLengthMax) return undefined;
  const name = cookieName(metadata);
  // On an HTTPS site, a cookie without the prefix could be set over HTTP or by another subdomain.
  const names = isSecure(request, baseUrl) ? [`__Host-${name}`] : [`__Host-${name}`, name];
  for (const wanted of names) {
    const secret = cookieValue(cookies, wanted);
    const found = secret === undefined ? undefined : findSession(metadata, secret, now);
    if (found !== undefined) return found;
  }
  return undefined;
}

export function setCookie(
  metadata: Metadata,
  request: Request,
  baseUrl: string | undefined,
  secret: string,
): string {
  const attributes = `HttpOnly; SameSite=Strict; Path=/; Max-Age=${secret === "" ? 0 : maxAgeSeconds}`;
  const name = cookieName(metadata);
  return isSecure(request, baseUrl)
    ? `__Host-${name}=${secret}; ${attributes}; Secure`
    : `${name}=${secret}; ${attributes}`;
}

/** Ports of a host share cookies: two servers on one machine would sign each other out. */
function cookieName(metadata: Metadata): string {
  const id = listOrganizations(metadata.db)[0]?.id ?? "";
  return `flagkeep-${id.replaceAll("-", "").slice(-6)}`;
}

/** Browsers send their scheme except with GET; without it, the operator's base URL decides. */
function isSecure(request: Request, baseUrl: string | undefined): boolean {
  const origin = request.headers.get("origin") ?? baseUrl ?? request.url;
  return origin.startsWith("https:");
}

function cookieValue(cookies: string, name: string): string | undefined {
  for (const cookie of cookies.split(";")) {
    const at = cookie.indexOf("=");
    if (at > 0 && cookie.slice(0, at).trim() === name) return cookie.slice(at + 1).trim();
  }
  return undefined;
}
