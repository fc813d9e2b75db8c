/** Replays what real client libraries sent to the routes of flag evaluation, byte for byte. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import browser from "../../fixtures/recordings-flags/flags-posthog-js.json";
import node from "../../fixtures/recordings-flags/flags-posthog-node.json";
import python from "../../fixtures/recordings-flags/flags-posthog-python.json";
import { person, when } from "../make.ts";
import { TestEvaluation } from "./support.ts";

interface Recording {
  sdk: string;
  scenario: string;
  method: string;
  url: string;
  headers: Record<string, string>;
  rawBase64: string;
  /** What was in the bytes, decoded by the recorder. */
  body: Record<string, unknown> | null;
}
/** The key in the recorded requests. */
const recordedToken = "phc_recordingprojecttoken";
const recordings = ([browser, node, python] as unknown as Recording[][]).flat();
const isOfManagement = ({ url }: Recording) =>
  url.startsWith("/flags/definitions") || url.includes("/remote_config");

/** The recorded clients accept packed answers; here nothing unpacks them on the way. */
async function toJson(response: Response): Promise<unknown> {
  const isPacked = response.headers.get("content-encoding") === "gzip";
  const bytes = await response.bytes();
  return JSON.parse(Buffer.from(isPacked ? gunzipSync(bytes) : bytes).toString());
}

let server: TestEvaluation;
beforeAll(() => {
  server = new TestEvaluation({ projectApiKey: recordedToken });
  server.flag("bool-on", when([]));
  server.flag("bool-off", when([], 0));
  server.flag("half", when([], 50));
  server.flag("direct", when([person("$initial_referrer", "exact", "$direct")]));
  server.flag("multi", {
    ...when([]),
    multivariate: {
      variants: [
        { key: "a", rollout_percentage: 50 },
        { key: "b", rollout_percentage: 50 },
      ],
    },
    payloads: { a: '{"from":"a"}' },
  });
});
afterAll(() => server[Symbol.dispose]());

describe("requests for flags", () => {
  const requests = recordings.filter(({ method, url }) => method === "POST" && url.startsWith("/flags"));
  requests.forEach(({ sdk, scenario, url, headers, rawBase64, body }, index) => {
    test(`${index + 1}: ${sdk}, ${scenario}, ${headers["content-type"]}`, async () => {
      const response = await server.send(url, { headers, body: Buffer.from(rawBase64, "base64") });
      expect(response.status).toBe(200);
      expect(response.headers.get("access-control-allow-origin")).toBe(headers.origin ?? null);
      // The same in plain JSON says what the answer has to be.
      const plain = await server.send("/flags/?v=2", {
        headers: { "user-agent": headers["user-agent"]! },
        body: JSON.stringify(body),
      });
      const [answer, expected] = [await toJson(response), await plain.json()] as Record<string, unknown>[];
      expect(answer!.flags).toEqual(expected!.flags as object);
      const asked = body!.flag_keys_to_evaluate as string[] | undefined;
      const all = ["bool-off", "bool-on", "direct", "half", "multi"];
      const keys = asked?.toSorted() ?? all;
      expect(Object.keys(answer!.flags as object).sort()).toEqual(keys);
      const referrer = (body!.person_properties as Record<string, unknown>).$initial_referrer;
      expect(answer!.flags).toMatchObject(
        asked ? {} : { direct: { enabled: referrer === "$direct" }, "bool-on": { enabled: true } },
      );
    });
  });

  test("are rejected for another project's key", async () => {
    using other = new TestEvaluation();
    for (const { url, headers, rawBase64 } of requests) {
      const response = await other.send(url, { headers, body: Buffer.from(rawBase64, "base64") });
      expect(response.status).toBe(401);
    }
    expect(requests.length).toBeGreaterThan(20);
  });
});

describe("requests for files and lists", () => {
  for (const recording of recordings) {
    const { sdk, scenario, method, url, headers } = recording;
    if (method === "POST" || isOfManagement(recording)) continue;
    test(`${sdk}, ${scenario}: ${method} ${url}`, async () => {
      const response = await server.send(url, { method, headers });
      expect(response.status).toBe(method === "OPTIONS" ? 204 : 200);
      expect(response.headers.get("access-control-allow-origin")).toBe(headers.origin ?? null);
      if (method === "GET") expect((await response.text()).length).toBeGreaterThan(10);
    });
  }
});
