/** A server, and requests of experiments of its project. */

import { expect } from "bun:test";
import { server } from "../support/use-server.ts";

export interface ApiResponse {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: responses of any route
  body: any;
}

/** @param path below the project's */
export async function api(
  path: string,
  init: { method?: string; body?: object; key?: string } = {},
): Promise<ApiResponse> {
  const response = await server.api(`/api/projects/1${path}`, init);
  return { status: response.status, body: await response.json().catch(() => undefined) };
}
export const post = (path: string, body: object = {}, key?: string) =>
  api(path, { method: "POST", body, key });
export const patch = (path: string, body: object, key?: string) => api(path, { method: "PATCH", body, key });

let drafts = 0;
/** Creates an experiment with a name of its own. */
export async function createDraft(fields: object = {}) {
  const { status, body } = await post("/experiments/", { name: `Experiment ${++drafts}`, ...fields });
  expect(status).toBe(201);
  return body;
}
