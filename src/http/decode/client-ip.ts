/**
 * Tells which address a request really comes from.
 *
 * `X-Forwarded-For` is believed only from the proxies that the operator has named: anybody else could write
 * anything there. Source: contract README, decision on `ip`.
 */

import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Peers whose trust is remembered; a reverse proxy has a handful of addresses. */
const rememberedPeersMax = 1_000;

/** Finds the client's address for each request. */
export class ClientAddresses {
  private readonly trusted: readonly [Address, number][];
  private readonly remembered = new Map<string, boolean>();

  /**
   * @param trustedProxies addresses or CIDR ranges, IPv4 or IPv6.
   * @throws {Error} one of them is neither; the message names it.
   */
  constructor(trustedProxies: readonly string[]) {
    this.trusted = trustedProxies.map(parseRange);
  }

  /**
   * The client's address in its usual notation.
   *
   * @param peer          the other end of the connection; undefined where there is none.
   * @param forwardedFor  the header's text; its first entry is the client.
   */
  find(peer: string | undefined, forwardedFor: () => string | null): string | undefined {
    if (peer === undefined) return undefined;
    if (this.trusted.length > 0 && this.isTrusted(peer)) {
      const first = forwardedFor()?.split(",", 1)[0]?.trim() ?? "";
      const client = parseAddress(withoutPort(first));
      if (client !== undefined) return client.toString();
    }
    // Only addresses of IPv4 clients on an IPv6 socket look unusual.
    return peer.startsWith("::ffff:") ? (parseAddress(peer)?.toString() ?? peer) : peer;
  }

  private isTrusted(peer: string): boolean {
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

/** IPv4 written as IPv6 comes out as IPv4; the short forms of IPv4 (`10.1`) are nobody's address. */
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
