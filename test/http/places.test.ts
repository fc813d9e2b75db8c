import { describe, expect, test } from "bun:test";
import { TrustedProxies } from "../../src/http/trusted-proxies.ts";

const trustedProxies = ["10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "::1"];

describe("the client's address", () => {
  for (const [name, trusted, peer, forwarded, expected] of [
    ["the peer", [], "198.51.100.7", null, "198.51.100.7"],
    ["nobody's word is taken", [], "198.51.100.7", "1.1.1.1", "198.51.100.7"],
    ["a stranger's word is not", trustedProxies, "198.51.100.7", "1.1.1.1", "198.51.100.7"],
    ["a proxy's word is", trustedProxies, "10.1.2.3", "1.1.1.1", "1.1.1.1"],
    [
      "the last hop that is no proxy counts",
      trustedProxies,
      "10.1.2.3",
      " 1.1.1.1 , 2.2.2.2,10.0.0.1",
      "2.2.2.2",
    ],
    [
      "what a client writes before is its own word",
      trustedProxies,
      "10.1.2.3",
      "127.0.0.1,10.9.9.9,2.2.2.2",
      "2.2.2.2",
    ],
    ["a way through proxies only", trustedProxies, "10.1.2.3", "10.0.0.7, 192.0.2.1", "10.0.0.7"],
    ["nonsense ends the way", trustedProxies, "10.1.2.3", "1.1.1.1, unknown, 10.0.0.1", "10.0.0.1"],
    ["a single trusted address", trustedProxies, "192.0.2.1", "1.1.1.1", "1.1.1.1"],
    ["its neighbor is a stranger", trustedProxies, "192.0.2.2", "1.1.1.1", "192.0.2.2"],
    ["a proxy over IPv6", trustedProxies, "2001:db8::5", "2001:DB8:0::9", "2001:db8::9"],
    ["loopback over IPv6", trustedProxies, "::1", "1.1.1.1", "1.1.1.1"],
    ["a proxy on an IPv6 socket", trustedProxies, "::ffff:10.1.2.3", "1.1.1.1", "1.1.1.1"],
    ["a client on an IPv6 socket", [], "::ffff:198.51.100.7", null, "198.51.100.7"],
    ["a port is left out", trustedProxies, "10.1.2.3", "1.1.1.1:5678", "1.1.1.1"],
    ["a port behind brackets too", trustedProxies, "10.1.2.3", "[2001:db8::9]:443", "2001:db8::9"],
    ["a proxy that says nothing", trustedProxies, "10.1.2.3", null, "10.1.2.3"],
    ["a proxy that says nonsense", trustedProxies, "10.1.2.3", "1.1.1.1, unknown", "10.1.2.3"],
    ["a proxy that says a number", trustedProxies, "10.1.2.3", "1", "10.1.2.3"],
    ["a proxy that says nothing much", trustedProxies, "10.1.2.3", ",", "10.1.2.3"],
    ["no connection", trustedProxies, undefined, "1.1.1.1", undefined],
  ] as const) {
    test(name, () => {
      const places = new TrustedProxies(trusted);
      const headers = new Headers(forwarded === null ? {} : { "x-forwarded-for": forwarded });
      expect(places.getClient(peer, headers)).toBe(expected);
      expect(places.getClient(peer, headers)).toBe(expected);
    });
  }

  for (const [forwarded, expected] of [
    ["for=1.1.1.1", "1.1.1.1"],
    ['for=3.3.3.3, for="[2001:DB9::9]:443";proto=https, For=10.0.0.1', "2001:db9::9"],
    ["for=_hidden", "10.1.2.3"],
    ["proto=https", "10.1.2.3"],
    ["for=", "10.1.2.3"],
  ] as const) {
    test(`Forwarded: ${forwarded}`, () => {
      expect(new TrustedProxies(trustedProxies).getClient("10.1.2.3", new Headers({ forwarded }))).toBe(
        expected,
      );
      expect(new TrustedProxies(trustedProxies).getClient("9.9.9.9", new Headers({ forwarded }))).toBe(
        "9.9.9.9",
      );
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
      expect(() => new TrustedProxies([wrong])).toThrow("trusted proxies");
    }
  });
});

describe("the address of this server", () => {
  const requested = new URL("http://10.1.2.4:8000/api/x?y");
  for (const [name, headers, expected] of [
    ["nothing said", {}, "http://10.1.2.4:8000"],
    ["scheme", { "x-forwarded-proto": "https" }, "https://10.1.2.4:8000"],
    [
      "scheme and host",
      { "x-forwarded-proto": "https", "x-forwarded-host": "f.example" },
      "https://f.example",
    ],
    [
      "a usual port",
      { "x-forwarded-proto": "HTTPS", "x-forwarded-host": "f.example:443" },
      "https://f.example",
    ],
    [
      "a prefix",
      { "x-forwarded-host": "f.example", "x-forwarded-prefix": "/flags/keep/" },
      "http://f.example/flags/keep",
    ],
    ["Forwarded", { forwarded: 'for=1.1.1.1;host="f.example:8443";proto=https' }, "https://f.example:8443"],
    [
      "the first of several",
      { "x-forwarded-proto": "https, http", "x-forwarded-host": "a.b, c.d" },
      "https://a.b",
    ],
    ["an IPv6 host", { "x-forwarded-host": "[::1]:9" }, "http://[::1]:9"],
    ["a scheme that is none", { "x-forwarded-proto": "javascript" }, "http://10.1.2.4:8000"],
    ["a host that is none", { "x-forwarded-host": "a b" }, "http://10.1.2.4:8000"],
    ["a host with a user", { "x-forwarded-host": "evil@x" }, "http://10.1.2.4:8000"],
    ["a port that is none", { "x-forwarded-host": "x:99999" }, "http://10.1.2.4:8000"],
    ["a prefix that is a host", { "x-forwarded-prefix": "//evil.example" }, "http://10.1.2.4:8000"],
    ["a prefix with a query", { "x-forwarded-prefix": "/a?b" }, "http://10.1.2.4:8000"],
  ] as const) {
    test(name, () => {
      const said = new Headers(headers as Record<string, string>);
      expect(new TrustedProxies(trustedProxies).getBaseUrl(requested, "10.1.2.3", said)).toBe(expected);
      for (const peer of ["9.9.9.9", undefined]) {
        expect(new TrustedProxies(trustedProxies).getBaseUrl(requested, peer, said)).toBe(
          "http://10.1.2.4:8000",
        );
      }
      const fixed = new TrustedProxies(trustedProxies, "https://set.example");
      expect(fixed.getBaseUrl(requested, "10.1.2.3", said)).toBe("https://set.example");
    });
  }
});
