/** Whether an address is on the public internet: not of this machine, of a private network or reserved. */

import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";

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
