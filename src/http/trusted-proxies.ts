/**
 * Resolves the client address and the base URL of requests.
 *
 * Forwarded headers are trusted only from the configured proxies: any other client could forge them. Source: contract
 * README, decision on `ip`; RFC 7239 for `Forwarded`.
 */

import ipaddr from "ipaddr.js";
import type { OriginResolver } from "./edge-deps.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Maximum number of cached peers; a reverse proxy has a handful of addresses. */
const rememberedPeersMax = 1_000;

export class TrustedProxies implements OriginResolver {
  private readonly trusted: readonly [Address, number][];
  private readonly remembered = new Map<string, boolean>();

  /**
   * @param trustedProxies addresses or CIDR ranges, IPv4 or IPv6.
   * @param publicUrl      URL by which clients reach this server, without a trailing slash; absent: from the request.
   * @throws {Error} one of the proxies is neither; the message names it.
   */
  constructor(
    trustedProxies: readonly string[],
    private readonly publicUrl?: string,
  ) {
    this.trusted = trustedProxies.map(parseRange);
  }

  /**
   * The client's address in canonical notation; undefined without a connection.
   *
   * Every proxy appends the address of its peer: the last address that is not a trusted proxy is the client, and
   * earlier ones are only the client's claim.
   */
  getClient(peer: string | undefined, headers: Headers): string | undefined {
    if (peer === undefined) return undefined;
    // Only addresses of IPv4 clients on an IPv6 socket are not canonical.
    let client = peer.startsWith("::ffff:") ? (parseAddress(peer)?.toString() ?? peer) : peer;
    if (!this.isTrusted(peer)) return client;
    const hops = headers.get("x-forwarded-for")?.split(",") ?? forwardedValues(headers, "for");
    for (const hop of hops.reverse()) {
      const address = parseAddress(withoutPort(hop.trim()))?.toString();
      if (address === undefined) return client;
      client = address;
      if (!this.isTrusted(address)) return client;
    }
    return client;
  }

  getBaseUrl(requested: URL, peer: string | undefined, headers: Headers): string {
    if (this.publicUrl !== undefined) return this.publicUrl;
    if (peer === undefined || !this.isTrusted(peer)) return requested.origin;
    const forwarded = (name: string) => {
      const own = headers.get(`x-forwarded-${name}`)?.split(",", 1)[0];
      return (own ?? forwardedValues(headers, name)[0])?.trim() ?? "";
    };
    const proto = forwarded("proto").toLowerCase();
    const host = forwarded("host");
    const prefix = (headers.get("x-forwarded-prefix")?.split(",", 1)[0]?.trim() ?? "").replace(/\/$/, "");
    const origin = `${/^https?$/.test(proto) ? `${proto}:` : requested.protocol}//${hostShape.test(host) ? host : requested.host}`;
    const start = URL.canParse(origin) ? new URL(origin).origin : requested.origin;
    return start + (prefixShape.test(prefix) ? prefix : "");
  }

  /** Whether this is one of the operator's proxies. */
  isTrusted(peer: string): boolean {
    if (this.trusted.length === 0) return false;
    const remembered = this.remembered.get(peer);
    if (remembered !== undefined) return remembered;
    const address = parseAddress(peer);
    const isTrusted =
      address !== undefined &&
      this.trusted.some(([range, bits]) => address.kind() === range.kind() && address.match(range, bits));
    if (this.remembered.size >= rememberedPeersMax) this.remembered.clear();
    this.remembered.set(peer, isTrusted);
    return isTrusted;
  }
}

const hostShape = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;
const prefixShape = /^(?:\/[A-Za-z0-9._~-]{1,100}){1,10}$/;

/** The values of one parameter of `Forwarded`, in the order of the hops. */
function forwardedValues(headers: Headers, name: string): string[] {
  const header = headers.get("forwarded");
  if (header === null) return [];
  return header.split(",").flatMap((hop) => {
    const pair = hop.split(";").find((part) => part.trim().toLowerCase().startsWith(`${name}=`));
    return pair === undefined
      ? []
      : [
          pair
            .slice(pair.indexOf("=") + 1)
            .trim()
            .replace(/^"(.*)"$/, "$1"),
        ];
  });
}

function parseRange(text: string): [Address, number] {
  const [network = "", bits, ...rest] = text.split("/");
  const address = parseAddress(network);
  const bitsMax = address?.kind() === "ipv4" ? 32 : 128;
  const width = bits === undefined ? bitsMax : Number(bits || Number.NaN);
  if (address === undefined || rest.length > 0 || !Number.isInteger(width) || width < 0 || width > bitsMax) {
    throw new Error(`"${text}" in the list of trusted proxies is neither an IP address nor a CIDR range.`);
  }
  return [address, width];
}

/** IPv4-mapped IPv6 becomes IPv4; the short forms of IPv4 (`10.1`) are invalid. */
function parseAddress(text: string): Address | undefined {
  const isAddress = ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text);
  return isAddress ? ipaddr.process(text) : undefined;
}

/** Some proxies write `1.2.3.4:5678` or `[2001:db8::1]:5678`. */
function withoutPort(text: string): string {
  const bracketed = /^\[(.+)\](?::\d+)?$/.exec(text);
  if (bracketed) return bracketed[1]!;
  return /^[\d.]+:\d+$/.test(text) ? text.slice(0, text.indexOf(":")) : text;
}
