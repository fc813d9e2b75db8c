/** Flags of the project, over the API. */

import { expect } from "bun:test";
import { server } from "../support/use-server.ts";

export interface Flag {
  id: number;
  key: string;
  active: boolean;
  deleted?: boolean;
  version: number;
  name: string;
  tags: string[];
  filters: { groups: { rollout_percentage: number; properties: object[] }[] };
}

/** A text that would run as a script if it were not escaped. */
export const hostile = `<img src=x onerror="document.title='owned'">`;

const flagsPath = () => `/api/projects/${server.initialized.project.id}/feature_flags/`;
export const flagPath = (id: number) => `${flagsPath()}${id}/`;

export async function readFlag(id: number): Promise<Flag> {
  return (await (await server.api(flagPath(id))).json()) as Flag;
}

export async function createFlag(body: Record<string, unknown>): Promise<Flag> {
  const answer = await server.api(flagsPath(), { method: "POST", body });
  expect(answer.status).toBe(201);
  return (await answer.json()) as Flag;
}
