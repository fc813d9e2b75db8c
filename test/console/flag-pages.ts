/** A server with flags and a browser that is signed in. */

import { afterAll, beforeAll, expect } from "bun:test";
import type { Browser } from "playwright-core";
import { startBrowser } from "../support/browser.ts";
import { ServerProcess } from "../support/server.ts";
import { openSignedIn, ownerCookie } from "./support.ts";

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

export let server: ServerProcess;
export let browser: Browser;
let cookie: string;

/** Starts both for the tests of a `describe`. */
export function useFlagPages(): void {
  beforeAll(async () => {
    server = await ServerProcess.start();
    cookie = await ownerCookie(server);
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
  });
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

export const openPage = (
  options: { width?: number; theme?: "light" | "dark"; expectedStatus?: number[] } = {},
) => openSignedIn(browser, cookie, { url: server.url, ...options });
