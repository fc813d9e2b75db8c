/**
 * The cookie of a session, and which requests may use it.
 *
 * A cookie is sent by a browser whoever's page asks. It counts only with a header that a page of another origin can
 * not send without being asked first, and never against what the browser says about the page.
 */

import { consoleHeader } from "../../http/cors.ts";
import type { Metadata } from "../metadata.ts";
import { listOrganizations } from "../organizations.ts";
import { findSession, type SignedIn } from "./sessions.ts";

const cookieLengthMax = 8_192;
const maxAgeSeconds = 30 * 86_400;

/**
 * Whether a request comes from the console itself: it says so, and the browser does not say otherwise.
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

/** The scheme is the proxy's affair, so host and port are compared; a port that a scheme implies is none. */
function isOwnOrigin(origin: string, request: Request, baseUrl: string | undefined): boolean {
  const asked = URL.parse(origin);
  if (asked === null || !/^https?:$/.test(asked.protocol)) return false;
  if (baseUrl !== undefined && URL.parse(baseUrl)?.origin === asked.origin) return true;
  const host = request.headers.get("host") ?? new URL(request.url).host;
  return URL.parse(`${asked.protocol}//${host}`)?.host === asked.host;
}

/** The session whose cookie a request of the console carries. */
export function sessionOf(
  metadata: Metadata,
  request: Request,
  baseUrl: string | undefined,
  now: Date,
): SignedIn | undefined {
  return isFromConsole(request, baseUrl) ? sessionInCookie(metadata, request, baseUrl, now) : undefined;
}

/** Whether somebody is signed in who asks for the page itself, which allows nothing yet: a link carries no header. */
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
): SignedIn | undefined {
  const cookies = request.headers.get("cookie");
  if (cookies === null || cookies.length > cookieLengthMax) return undefined;
  const name = cookieName(metadata);
  // Whoever could set a cookie without the prefix, for a site that has https, shall not choose the session.
  const names = isSecure(request, baseUrl) ? [`__Host-${name}`] : [`__Host-${name}`, name];
  for (const wanted of names) {
    const secret = cookieValue(cookies, wanted);
    const found = secret === undefined ? undefined : findSession(metadata, secret, now);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The header that gives a browser its cookie. */
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

/** Cookies are shared by the ports of a host: two servers on one machine would sign each other out. */
function cookieName(metadata: Metadata): string {
  const id = listOrganizations(metadata.db)[0]?.id ?? "";
  return `flagkeep-${id.replaceAll("-", "").slice(-6)}`;
}

/** Browsers tell their scheme with everything but a GET; without, the operator's word counts. */
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
