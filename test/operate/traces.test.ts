/** Traces by OTLP over HTTP, as a collector gets them from the executable. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { ServerProcess, until } from "../support/server.ts";

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
let server: ServerProcess;

beforeAll(async () => {
  collector = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
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
  server = await ServerProcess.start({
    args: ["--traces-endpoint", `http://127.0.0.1:${collector.port}`, "--log-level", "debug"],
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await collector.stop(true);
});

const named = (name: string) =>
  until(() => spans.find((span) => span.name === name), `there is a span ${name}`);
const getAttribute = (span: OtlpSpan, key: string) =>
  Object.values(span.attributes.find((one) => one.key === key)?.value ?? {})[0];

test("requests, questions to the engine and loads have spans; keys and bodies are in none", async () => {
  await server.capture({ event: "x", distinct_id: "kim" });
  await server.eventsWhenStored(1);
  await server.query("SELECT count(*) FROM events");
  await fetch(`${server.url}/array/${server.token}/config.js`);
  const capture = await named("POST /capture");
  expect(capture).toMatchObject({ kind: 2, status: { code: 0 } });
  expect(getAttribute(capture, "http.route")).toBe("/capture");
  expect(Number(getAttribute(capture, "http.response.status_code"))).toBe(200);
  expect(BigInt(capture.endTimeUnixNano) > BigInt(capture.startTimeUnixNano)).toBe(true);
  const query = await named("POST /api/projects/:project_id/query");
  const engine = await named("engine query");
  expect(engine).toMatchObject({ traceId: query.traceId, parentSpanId: query.spanId, kind: 3 });
  const load = await named("load journal");
  expect(Number(getAttribute(load, "flagkeep.events"))).toBe(1);
  expect(resource.map(({ key, value }) => [key, value.stringValue])).toContainEqual([
    "service.name",
    "flagkeep",
  ]);
  await until(() => spans.some(({ name }) => name.includes("/array/")), "the configuration's span is there");
  const all = JSON.stringify(spans);
  for (const secret of [server.token, server.initialized.personal_api_key, "kim"])
    expect(all).not.toContain(secret);
}, 60_000);

test("a trace that the client brings continues", async () => {
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  const spanId = "00f067aa0ba902b7";
  await fetch(`${server.url}/api/projects/`, { headers: { traceparent: `00-${traceId}-${spanId}-01` } });
  const found = await until(() => spans.find((span) => span.traceId === traceId), "it is there");
  expect(found).toMatchObject({ parentSpanId: spanId, name: "GET /api/projects" });
  // The client has chosen that there is none; nor is one made of nonsense.
  await fetch(`${server.url}/api/users/@me/`, {
    headers: { traceparent: `00-${"a".repeat(32)}-${spanId}-00` },
  });
  await fetch(`${server.url}/api/schema/`, { headers: { traceparent: "00-nonsense" } });
  await named("GET /api/schema");
  expect(spans.some((span) => span.traceId === "a".repeat(32))).toBe(false);
}, 60_000);

test("a collector that rejects is logged, and blocks no request", async () => {
  isAway = true;
  expect((await server.capture({ event: "y", distinct_id: "kim" })).status).toBe(200);
  await until(
    () => server.logs.some(({ msg }) => msg === "failed to send traces to the collector"),
    "the log tells",
  );
  expect((await server.capture({ event: "z", distinct_id: "kim" })).status).toBe(200);
  isAway = false;
  expect(await server.stop()).toBe(0);
}, 60_000);
