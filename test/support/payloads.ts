import type { PayloadCipher } from "../../src/flags/store/flag-writes.ts";

/** Keeps payloads as they are. */
export const plainPayloads: PayloadCipher = { open: (flag) => flag.filters, seal: (filters) => filters };
