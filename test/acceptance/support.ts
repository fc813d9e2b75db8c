/** A server, and the state that clients observe when all sent events are readable. */

import { expect } from "bun:test";
import { type StoredEvent, until } from "../support/server.ts";
import { server } from "../support/use-server.ts";

let counter = 0;
/** Ids that no other case uses. */
export const unique = (name: string) => `${name}-${counter++}`;

export async function send(
  path: string,
  body: string | Uint8Array<ArrayBuffer> | undefined,
  headers: Record<string, string> = {},
  method = "POST",
) {
  return await fetch(`${server.url}${path}`, { method, body, headers });
}

/** Waits until everything sent before is readable, then reads the events of a distinct id. */
export async function getEvents(distinctId: string): Promise<StoredEvent[]> {
  await everythingReadable();
  return await server.events(`order=seq&distinct_id=${encodeURIComponent(distinctId)}`);
}

export async function everythingReadable(): Promise<void> {
  const uuid = Bun.randomUUIDv7();
  await server.capture({ event: "marker", distinct_id: "marker", uuid });
  await until(async () => (await server.events(`uuid=${uuid}`)).length === 1, "the marker is readable");
}

export interface PersonBody {
  uuid: string;
  distinct_ids: string[];
  properties: Record<string, unknown>;
}

export async function getPersons(distinctId: string): Promise<PersonBody[]> {
  await everythingReadable();
  const response = await server.api(`/api/projects/1/persons/?distinct_id=${encodeURIComponent(distinctId)}`);
  expect(response.status).toBe(200);
  return ((await response.json()) as { results: PersonBody[] }).results;
}

export async function getWarnings(type: string): Promise<number> {
  await everythingReadable();
  const response = await server.api("/api/projects/1/ingestion_warnings/");
  expect(response.status).toBe(200);
  const { results } = (await response.json()) as { results: { type: string; count: number }[] };
  return results.filter((warning) => warning.type === type).reduce((sum, { count }) => sum + count, 0);
}

export const item = (distinctId: string, more: Record<string, unknown> = {}) => ({
  api_key: server.token,
  event: "thing",
  distinct_id: distinctId,
  ...more,
});
