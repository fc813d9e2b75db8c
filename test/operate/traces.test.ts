/** Traces by OTLP over HTTP, as a collector gets them from the executable. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestAppliance, until } from "../support/appliance.ts";

interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Record<string, unknown> }[];
  status: { code: number };
}

const spans: OtlpSpan[] = [];
let resource: OtlpSpan["attributes"] = [];
let isAway = false;
let collector: ReturnType<typeof Bun.serve>;
let appliance: TestAppliance;

beforeAll(async () => {
  collector = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0 },
    async fetch(request) {
      if (isAway) return new Response("", { status: 400 });
      expect([request.method, new URL(request.url).pathname]).toEqual(["POST", "/v1/traces"]);
      const body = (await request.json()) as {
        resourceSpans: { resource: { attributes: typeof resource }; scopeSpans: { spans: OtlpSpan[] }[] }[];
      };
      for (const part of body.resourceSpans) {
        resource = part.resource.attributes;
        for (const scope of part.scopeSpans) spans.push(...scope.spans);
      }
      return Response.json({});
    },
  });
  appliance = await TestAppliance.start({
    args: ["--traces-endpoint", `http://127.0.0.1:${collector.port}`, "--log-level", "debug"],
  });
});
afterAll(async () => {
  await appliance[Symbol.asyncDispose]();
  await collector.stop(true);
});

const named = (name: string) =>
  until(() => spans.find((span) => span.name === name), `there is a span ${name}`);
const attributeOf = (span: OtlpSpan, key: string) =>
  Object.values(span.attributes.find((one) => one.key === key)?.value ?? {})[0];

test("requests, questions to the engine and loads have spans; keys and bodies are in none", async () => {
  await appliance.capture({ event: "x", distinct_id: "kim" });
  await appliance.eventsWhenStored(1);
  await appliance.query("SELECT count(*) FROM events");
  await fetch(`${appliance.url}/array/${appliance.token}/config.js`);
  const capture = await named("POST /capture");
  expect(capture).toMatchObject({ kind: 2, status: { code: 0 } });
  expect(attributeOf(capture, "http.route")).toBe("/capture");
  expect(Number(attributeOf(capture, "http.response.status_code"))).toBe(200);
  expect(BigInt(capture.endTimeUnixNano) > BigInt(capture.startTimeUnixNano)).toBe(true);
  const query = await named("POST /api/projects/:project_id/query");
  const engine = await named("engine query");
  expect(engine).toMatchObject({ traceId: query.traceId, parentSpanId: query.spanId, kind: 3 });
  const load = await named("load journal");
  expect(Number(attributeOf(load, "flagkeep.events"))).toBe(1);
  expect(resource.map(({ key, value }) => [key, value.stringValue])).toContainEqual([
    "service.name",
    "flagkeep",
  ]);
  await until(() => spans.some(({ name }) => name.includes("/array/")), "the configuration's span is there");
  const all = JSON.stringify(spans);
  for (const secret of [appliance.token, appliance.made.personal_api_key, "kim"])
    expect(all).not.toContain(secret);
}, 60_000);

test("a trace that the client brings goes on", async () => {
  const [traceId, spanId] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
  await fetch(`${appliance.url}/api/projects/`, { headers: { traceparent: `00-${traceId}-${spanId}-01` } });
  const found = await until(() => spans.find((span) => span.traceId === traceId), "it is there");
  expect(found).toMatchObject({ parentSpanId: spanId, name: "GET /api/projects" });
  // The client has chosen that there is none; nor is one made of nonsense.
  await fetch(`${appliance.url}/api/users/@me/`, {
    headers: { traceparent: `00-${"a".repeat(32)}-${spanId}-00` },
  });
  await fetch(`${appliance.url}/api/schema/`, { headers: { traceparent: "00-nonsense" } });
  await named("GET /api/schema");
  expect(spans.some((span) => span.traceId === "a".repeat(32))).toBe(false);
}, 60_000);

test("a collector that refuses is told of in the log, and hinders nobody", async () => {
  isAway = true;
  expect((await appliance.capture({ event: "y", distinct_id: "kim" })).status).toBe(200);
  await until(
    () => appliance.logs.some(({ msg }) => msg === "traces could not be sent to the collector"),
    "the log tells",
  );
  expect((await appliance.capture({ event: "z", distinct_id: "kim" })).status).toBe(200);
  isAway = false;
  expect(await appliance.stop()).toBe(0);
}, 60_000);
