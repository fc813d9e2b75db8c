/** Where webhooks may send: every form of an address of this machine or of a private network is rejected. */

import { describe, expect, test } from "bun:test";
import { networkInterfaces } from "node:os";
import { checkWebhookUrl, isPublicAddress, resolveAllowed } from "../../../src/operate/webhooks/address.ts";

const names: Record<string, string[]> = {
  "public.example": ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
  "private.example": ["10.1.2.3"],
  "mixed.example": ["93.184.215.14", "127.0.0.1"],
  "mapped.example": ["::ffff:192.168.0.1"],
  localhost: ["127.0.0.1", "::1"],
};
const resolve = async (host: string) => names[host] ?? Promise.reject(new Error("ENOTFOUND"));
const check = (url: string, allowed: string[] = []) => checkWebhookUrl(url, { allowed, resolve });

describe("rejected addresses", () => {
  test.each([
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://0/",
    "http://0.0.0.0:8000/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.64.0.1/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://240.0.0.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:a00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::a00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fec0::1]/",
    "http://[fd00::1]/",
    "http://[ff02::1]/",
    "http://①②⑦.⓪.⓪.①/",
    "http://localhost/",
    "http://private.example/",
    "http://mixed.example/",
    "http://mapped.example/",
  ])("%s", async (url) => {
    const error = (await check(url).catch((thrown: unknown) => thrown)) as { field: string; code: string };
    expect([error.field, error.code]).toEqual(["url", "address_not_allowed"]);
  });

  test("own addresses of this machine, whatever their range", () => {
    const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
    expect(own.length).toBeGreaterThan(0);
    for (const { address } of own) expect([address, isPublicAddress(address)]).toEqual([address, false]);
  });
});

test.each([
  "ftp://public.example/",
  "file:///etc/passwd",
  "public.example",
  "https://",
  "",
  "https://ann:secret@public.example/",
  `https://public.example/${"x".repeat(2_000)}`,
])("not a URL for webhooks: %s", async (url) => {
  const error = (await check(url).catch((thrown: unknown) => thrown)) as { field: string };
  expect(error.field).toBe("url");
});

test.each([
  ["https://public.example/hook#part", "https://public.example/hook"],
  ["http://8.8.8.8:8080/x", "http://8.8.8.8:8080/x"],
  ["https://[2606:4700::1111]/", "https://[2606:4700::1111]/"],
  ["https://[64:ff9b::808:808]/", "https://[64:ff9b::808:808]/"],
  // It may exist later; deliveries report it until then.
  ["https://not-yet.example/", "https://not-yet.example/"],
])("accepted: %s", async (url, saved) => expect(await check(url)).toBe(saved));

test("networks that the operator allows", async () => {
  const allowed = ["10.1.0.0/16", "127.0.0.1", "::1/128"];
  expect(await check("http://10.1.2.3/", allowed)).toBe("http://10.1.2.3/");
  expect(await check("http://[::ffff:10.1.2.3]/", allowed)).toBe("http://[::ffff:a01:203]/");
  expect(await check("http://localhost/", allowed)).toBe("http://localhost/");
  expect(await check("http://private.example/", allowed)).toBe("http://private.example/");
  expect(check("http://10.2.0.1/", allowed)).rejects.toThrow("10.2.0.1 is an address");
  expect(check("http://127.0.0.2/", allowed)).rejects.toThrow("127.0.0.2 is an address");
});

test("a name is resolved once per request, so a name that changes cannot lead elsewhere", async () => {
  let calls = 0;
  const rebinding = async () => (calls++ === 0 ? ["93.184.215.14"] : ["127.0.0.1"]);
  const url = new URL("http://rebinding.example/");
  expect(await resolveAllowed(url, { allowed: [], resolve: rebinding })).toEqual(["93.184.215.14"]);
  expect(calls).toBe(1);
  expect(resolveAllowed(url, { allowed: [], resolve: rebinding })).rejects.toThrow("127.0.0.1");
});
