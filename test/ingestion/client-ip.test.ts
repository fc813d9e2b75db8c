import { describe, expect, test } from "bun:test";
import { ClientAddresses } from "../../src/http/decode/client-ip.ts";

const trustedNets = ["10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "::1"];

describe("the client's address", () => {
  for (const [name, trusted, peer, forwarded, expected] of [
    ["the peer", [], "198.51.100.7", null, "198.51.100.7"],
    ["nobody's word is taken", [], "198.51.100.7", "1.1.1.1", "198.51.100.7"],
    ["a stranger's word is not", trustedNets, "198.51.100.7", "1.1.1.1", "198.51.100.7"],
    ["a proxy's word is", trustedNets, "10.1.2.3", "1.1.1.1", "1.1.1.1"],
    ["the first hop counts", trustedNets, "10.1.2.3", " 1.1.1.1 , 2.2.2.2,10.0.0.1", "1.1.1.1"],
    ["a single trusted address", trustedNets, "192.0.2.1", "1.1.1.1", "1.1.1.1"],
    ["its neighbour is a stranger", trustedNets, "192.0.2.2", "1.1.1.1", "192.0.2.2"],
    ["a proxy over IPv6", trustedNets, "2001:db8::5", "2001:DB8:0::9", "2001:db8::9"],
    ["loopback over IPv6", trustedNets, "::1", "1.1.1.1", "1.1.1.1"],
    ["a proxy on an IPv6 socket", trustedNets, "::ffff:10.1.2.3", "1.1.1.1", "1.1.1.1"],
    ["a client on an IPv6 socket", [], "::ffff:198.51.100.7", null, "198.51.100.7"],
    ["a port is left out", trustedNets, "10.1.2.3", "1.1.1.1:5678", "1.1.1.1"],
    ["a port behind brackets too", trustedNets, "10.1.2.3", "[2001:db8::9]:443", "2001:db8::9"],
    ["a proxy that says nothing", trustedNets, "10.1.2.3", null, "10.1.2.3"],
    ["a proxy that says nonsense", trustedNets, "10.1.2.3", "unknown, 1.1.1.1", "10.1.2.3"],
    ["a proxy that says a number", trustedNets, "10.1.2.3", "1", "10.1.2.3"],
    ["a proxy that says nothing much", trustedNets, "10.1.2.3", ",", "10.1.2.3"],
    ["no connection", trustedNets, undefined, "1.1.1.1", undefined],
  ] as const) {
    test(name, () => {
      const addresses = new ClientAddresses(trusted);
      expect(addresses.find(peer, () => forwarded)).toBe(expected);
      expect(addresses.find(peer, () => forwarded)).toBe(expected);
    });
  }

  test("a proxy that cannot be understood stops the start", () => {
    for (const wrong of [
      "proxy.example",
      "10.0.0.0/40",
      "",
      "10.0.0",
      "10.0.0.0/",
      "10.0.0.0/8/8",
      "10.0.0.0/1.5",
      "1",
    ]) {
      expect(() => new ClientAddresses([wrong])).toThrow("trusted proxies");
    }
  });
});
