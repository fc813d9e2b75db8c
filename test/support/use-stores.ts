/** The event and person store of a test file. */

import { afterAll, beforeAll } from "bun:test";
import { TestStores } from "./event-store.ts";

export let stores: TestStores;

/** Opens `stores` for the tests of a file or of a `describe`. */
export function useStores(): void {
  beforeAll(async () => {
    stores = await TestStores.open();
  });
  afterAll(async () => await stores?.[Symbol.asyncDispose]());
}
