/** Fields that all sources have in common: addresses, campaigns, screens, geography (contract, import 2). Pure. */

import type { Json } from "../../lib/json.ts";
import { campaignNames } from "../../people/identity/automatic-properties.ts";

/** The longest address that is parsed. */
const addressLengthMax = 64 * 1024;
const screenForm = /^(\d{1,6})x(\d{1,6})$/;

/** The properties of an event, which can only be added to. */
export interface Fillable {
  get: (name: string) => Json | undefined;
  fill: (name: string, value: Json | undefined) => boolean;
}

/** Fills the gaps that `$current_url` and `$referrer` can fill. */
export function deriveFromAddresses(draft: Fillable): void {
  const address = parseAddress(draft.get("$current_url"));
  if (address !== undefined) {
    if (address.host !== "") {
      draft.fill("$host", address.host);
      draft.fill("$pathname", address.pathname);
    }
    for (const name of campaignNames) draft.fill(name, address.searchParams.get(name) ?? undefined);
  }
  draft.fill("$referring_domain", parseAddress(draft.get("$referrer"))?.host);
}

function parseAddress(value: unknown): URL | undefined {
  if (typeof value !== "string" || value.length > addressLengthMax) return undefined;
  return URL.parse(value) ?? undefined;
}

/** `1024x768` as width and height. @returns false for another form. */
export function fillScreen(draft: Fillable, screen: unknown): boolean {
  const match = typeof screen === "string" ? screenForm.exec(screen.trim()) : null;
  if (match === null) return false;
  draft.fill("$screen_width", Number(match[1]));
  draft.fill("$screen_height", Number(match[2]));
  return true;
}

/** An address of its parts; HTTPS where only the host is known. */
export function joinAddress(host: string | undefined, path: string | undefined, query: string | undefined) {
  if (path === undefined && host === undefined) return undefined;
  const search = query === undefined ? "" : `?${query.replace(/^\?/, "")}`;
  const rest = `${path ?? ""}${search}`;
  return host === undefined
    ? rest
    : `https://${host}${rest.startsWith("/") || rest === "" || path === undefined ? rest : `/${rest}`}`;
}
