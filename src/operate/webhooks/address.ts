/**
 * Checks where a webhook sends: only to addresses of the public internet, except for networks that the operator allows. The
 * name is resolved once, and the request goes to the address that was checked, so that a name cannot change in between.
 */

import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";
import { AppError, InvalidFieldError } from "../../lib/errors.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** IPv6 addresses of the public internet; everything else is local, reserved or a transition mechanism. */
const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");

/** IPv4-mapped IPv6 becomes IPv4; undefined if it is not an address. */
function parse(text: string): Address | undefined {
  const [address = ""] = text.split("%");
  return ipaddr.isValid(address) ? ipaddr.process(address) : undefined;
}

/** @param allowed addresses and CIDR ranges that count as public. */
export function isPublicAddress(text: string, allowed: readonly string[] = []): boolean {
  const address = parse(text);
  if (address === undefined) return false;
  if (allowed.some((range) => isIn(address, range))) return true;
  if (address.range() !== "unicast") return isPublicNat64(address);
  if (address instanceof ipaddr.IPv6 && !address.match(globalUnicast)) return false;
  return !localAddresses().has(address.toString());
}

/** 64:ff9b::/96, by which hosts without IPv4 reach IPv4 addresses. */
const nat64 = ipaddr.IPv6.parseCIDR("64:ff9b::/96");

function isPublicNat64(address: Address): boolean {
  if (!(address instanceof ipaddr.IPv6) || !address.match(nat64)) return false;
  return isPublicAddress(address.toByteArray().slice(12).join("."));
}

function isIn(address: Address, range: string): boolean {
  const [network = "", bits] = range.split("/");
  const base = parse(network);
  if (base === undefined || base.kind() !== address.kind()) return false;
  const bitsMax = base.kind() === "ipv4" ? 32 : 128;
  return address.match(base as never, bits === undefined ? bitsMax : Number(bits));
}

/** Addresses of this machine, which may be public. */
function localAddresses(): Set<string> {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return new Set(all.map(({ address }) => parse(address)?.toString() ?? ""));
}

const lookupMs = 3_000;
/** Addresses of a name that are considered. */
const addressesMax = 16;
export const urlLengthMax = 2_000;
const settingName = "--webhook-allowed-networks";

/** The address is not allowed. */
export class ForbiddenAddressError extends AppError {
  readonly code = "address_not_allowed";
}

/** A name has no address, or the name server does not respond. */
class UnresolvedNameError extends AppError {
  readonly code = "name_not_found";
}

export interface AddressRules {
  /** Private addresses and CIDR ranges that webhooks may call. */
  allowed: readonly string[];
  /** Resolves a name; default: the system's resolver. */
  resolve?: (host: string) => Promise<string[]>;
}

async function systemResolve(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

/**
 * The addresses of a URL's host, each of which is allowed.
 *
 * @throws {ForbiddenAddressError} @throws {UnresolvedNameError}
 */
export async function resolveAllowed(
  url: URL,
  { allowed, resolve = systemResolve }: AddressRules,
): Promise<string[]> {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const addresses = isAddress(host) ? [host] : await resolveName(host, resolve);
  for (const address of addresses) if (!isPublicAddress(address, allowed)) throw forbidden(host, address);
  return addresses;
}

const isAddress = (host: string) => host.includes(":") || /^[\d.]+$/.test(host);

async function resolveName(host: string, resolve: (host: string) => Promise<string[]>): Promise<string[]> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => timeout.reject(new Error("timeout")), lookupMs);
  try {
    const addresses = await Promise.race([resolve(host), timeout.promise]);
    if (addresses.length > 0) return addresses.slice(0, addressesMax);
  } catch {
    // Reported below.
  } finally {
    clearTimeout(timer);
  }
  throw new UnresolvedNameError(`The host name ${host} cannot be resolved.`);
}

function forbidden(host: string, address: string): ForbiddenAddressError {
  const what = host === address ? address : `${host} (${address})`;
  return new ForbiddenAddressError(
    `${what} is an address of this machine or of a private network, which webhooks may not call unless ${settingName} allows it.`,
  );
}

/**
 * Checks the URL of a webhook when it is saved. A name that cannot be resolved now is accepted: deliveries report it.
 *
 * @throws {InvalidFieldError} on `url`.
 */
export async function checkWebhookUrl(text: string, rules: AddressRules): Promise<string> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === "")
    throw invalid("Enter a URL such as https://hooks.example.com/flags.");
  if (text.length > urlLengthMax)
    throw invalid(`Ensure this field has no more than ${urlLengthMax} characters.`, "max_length");
  if (url.username !== "" || url.password !== "")
    throw invalid("A webhook URL cannot contain a user name or password.");
  try {
    await resolveAllowed(url, rules);
  } catch (error) {
    if (error instanceof ForbiddenAddressError) throw invalid(error.message, error.code);
    if (!(error instanceof UnresolvedNameError)) throw error;
  }
  url.hash = "";
  return url.href;
}

function invalid(message: string, code = "invalid_input"): InvalidFieldError {
  return new InvalidFieldError("url", code, message);
}
