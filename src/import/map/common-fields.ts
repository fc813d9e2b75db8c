/** Fields common to all sources: URLs, campaigns, screens, geography (contract, import 2). Pure. */

import type { Json } from "../../lib/json/value.ts";
import { campaignNames } from "../../persons/identity/automatic-properties.ts";

/** Longer URLs are not parsed. */
const addressLengthMax = 64 * 1024;
/** Stands in for the host of a URL that is only a path. */
const noHost = "host.invalid";
const screenForm = /^(\d{1,6})x(\d{1,6})$/;

/** The properties of an event, which can only be added to. */
export interface Fillable {
  get: (name: string) => Json | undefined;
  fill: (name: string, value: Json | undefined) => boolean;
}

/** Derives missing properties from `$current_url` and `$referrer`. */
export function deriveFromAddresses(draft: Fillable): void {
  const current = draft.get("$current_url");
  const address = parseAddress(current) ?? parsePath(current);
  if (address !== undefined) {
    if (address.host !== "" && address.host !== noHost) draft.fill("$host", address.host);
    if (address.host !== "") draft.fill("$pathname", address.pathname);
    for (const name of campaignNames) draft.fill(name, address.searchParams.get(name) ?? undefined);
  }
  draft.fill("$referring_domain", parseAddress(draft.get("$referrer"))?.host);
}

const countryForm = /^[a-z]{2}$/i;
/** Created on first use: loading the names takes time. */
let countryNames: Intl.DisplayNames | undefined;

/** Derives the English name of the country from its code. */
export function deriveCountryName(draft: Fillable): void {
  const code = draft.get("$geoip_country_code");
  if (typeof code !== "string" || !countryForm.test(code)) return;
  countryNames ??= new Intl.DisplayNames(["en"], { type: "region", fallback: "none" });
  const known = code.toUpperCase() === "ZZ" ? undefined : countryNames.of(code.toUpperCase());
  draft.fill("$geoip_country_name", known);
}

function parseAddress(value: unknown): URL | undefined {
  if (typeof value !== "string" || value.length > addressLengthMax) return undefined;
  return URL.parse(value) ?? undefined;
}

/** Parses a URL without a host. */
function parsePath(value: unknown): URL | undefined {
  if (typeof value !== "string" || !value.startsWith("/") || value.startsWith("//")) return undefined;
  return parseAddress(`https://${noHost}${value}`);
}

/** Parses `1024x768` into width and height. @returns false for another form. */
export function fillScreen(draft: Fillable, screen: unknown): boolean {
  const match = typeof screen === "string" ? screenForm.exec(screen.trim()) : null;
  if (match === null) return false;
  draft.fill("$screen_width", Number(match[1]));
  draft.fill("$screen_height", Number(match[2]));
  return true;
}

/** A URL from its parts; HTTPS when only the host is known. */
export function joinAddress(host: string | undefined, path: string | undefined, query: string | undefined) {
  if (path === undefined && host === undefined) return undefined;
  const search = query === undefined ? "" : `?${query.replace(/^\?/, "")}`;
  const rest = `${path ?? ""}${search}`;
  return host === undefined
    ? rest
    : `https://${host}${rest.startsWith("/") || rest === "" || path === undefined ? rest : `/${rest}`}`;
}
