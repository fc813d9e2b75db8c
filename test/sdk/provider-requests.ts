/**
 * The requests of PostHog's Terraform provider, in its order, and what it needs of each response. A tool that keeps a
 * state fails when a response differs from what it wrote, when a member has another type than its client decodes, or when
 * reading again shows a difference.
 *
 * Source: contract, management-api 9.
 */

import { expect } from "bun:test";
import { server } from "../support/use-server.ts";

export type Json = Record<string, unknown>;

/** Sends the same headers with each request, with or without a body. */
export async function send(
  method: string,
  path: string,
  body?: object,
): Promise<{ status: number; body: Json }> {
  const response = await fetch(server.url + path, {
    method,
    headers: {
      Authorization: `Bearer ${server.initialized.personal_api_key}`,
      "Content-Type": "application/json",
      "User-Agent": "posthog/terraform-provider; version: test",
    },
    body: body && JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? {} : JSON.parse(text) };
}

/** The response of a request that must succeed. */
export async function done(method: string, path: string, body?: object): Promise<Json> {
  const answer = await send(method, path, body);
  if (answer.status >= 300)
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** Members that a typed client decodes; any may be null or absent, except those with `!`. */
export type Shape = {
  [member: string]: "int" | "int!" | "text" | "text!" | "bool" | "texts" | "ints" | "object" | Shape;
};

export function findProblems(value: Json, shape: Shape, path = "$"): string[] {
  return Object.entries(shape).flatMap(([name, kind]) => {
    const found = value[name];
    const place = `${path}.${name}`;
    if (found === null || found === undefined)
      return String(kind).endsWith("!") ? [`${place} is missing`] : [];
    if (typeof kind === "object") return findProblems(found as Json, kind, place);
    return fits(found, kind.replace("!", "")) ? [] : [`${place} is ${JSON.stringify(found)}, not ${kind}`];
  });
}

function fits(value: unknown, kind: string): boolean {
  if (kind === "texts") return Array.isArray(value) && value.every((each) => typeof each === "string");
  if (kind === "ints") return Array.isArray(value) && value.every((each) => Number.isInteger(each));
  if (kind === "object") return typeof value === "object" && !Array.isArray(value);
  if (kind === "int") return Number.isInteger(value);
  return typeof value === (kind === "text" ? "string" : "boolean");
}

export interface Resource {
  path: string;
  shape: Shape;
  /** Added to every change. */
  always?: Json;
  /** Members that are sent and not read back. */
  writeOnly?: string[];
}

/** Sends a resource, and expects its members in the response and in the next read. */
export async function applied(
  method: "POST" | "PATCH",
  resource: Resource,
  id: unknown,
  sent: Json,
): Promise<Json> {
  const path = method === "POST" ? resource.path : `${resource.path}${id}/`;
  const answer = await done(method, path, { ...sent, ...resource.always });
  const read = await done("GET", `${resource.path}${method === "POST" ? answer.id : id}/`);
  for (const body of [answer, read]) {
    expect(findProblems(body, resource.shape)).toEqual([]);
    for (const [name, value] of Object.entries({ ...sent, ...resource.always })) {
      if (resource.writeOnly?.includes(name)) continue;
      const found = name === "tags" ? [...(body.tags as string[])].sort() : body[name];
      expect([name, found]).toEqual([name, name === "tags" ? [...(value as string[])].sort() : value]);
    }
  }
  return read;
}
