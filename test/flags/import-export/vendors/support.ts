/** Files of other products imported into projects of their own. */

import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { initialize } from "../../../../src/accounts/initialize.ts";
import { type Metadata, openMetadata } from "../../../../src/accounts/metadata.ts";
import { createProject } from "../../../../src/accounts/projects.ts";
import { clientValue, evaluate } from "../../../../src/flags/evaluate/evaluate.ts";
import { FlagInput, flagFields } from "../../../../src/flags/fields.ts";
import type { FlagItem } from "../../../../src/flags/import-export/document.ts";
import { importDocument } from "../../../../src/flags/import-export/import-document.ts";
import { parseFile } from "../../../../src/flags/import-export/read-document.ts";
import { readVendorFile } from "../../../../src/flags/import-export/vendors/read-vendor-file.ts";
import { readFlags } from "../../../../src/flags/store/flag.ts";
import { FlagSets } from "../../../../src/flags/store/flag-sets.ts";
import { payloadCipher } from "../../../../src/flags/store/payload-cipher.ts";
import { parseFields } from "../../../../src/http/fields.ts";
import type { Json, JsonObject } from "../../../../src/lib/json/value.ts";
import { requestFor } from "../../make.ts";

const now = new Date("2026-03-01T12:00:00Z");

/** A store for the tests of a file, which imports files with all the rules for flags. */
export function foreignImports() {
  const folder = mkdtempSync(join(tmpdir(), "flagkeep-foreign-"));
  let metadata: Metadata;
  let organizationId: string;
  beforeAll(() => {
    metadata = openMetadata(join(folder, "m.sqlite"));
    const created = initialize(
      metadata,
      { organization: "Acme", project: "One", email: "ann@example.com" },
      now,
    );
    organizationId = created.organization.id;
  });
  afterAll(() => {
    metadata.close();
    rmSync(folder, { recursive: true });
  });
  return (text: string, environment?: string) => imported(metadata, organizationId, text, environment);
}

function imported(metadata: Metadata, organizationId: string, text: string, environment?: string) {
  const reading = readVendorFile(parseFile(text), environment);
  if (reading === undefined) throw new Error("The file is of no known product.");
  const project = createProject(metadata, { organizationId, name: "Own" }, null, now);
  const { omitted } = importDocument(
    { metadata, payloads: payloadCipher(Buffer.alloc(32, 7)) },
    {
      by: null,
      projectId: project.id,
      document: reading.document,
      groupTypes: [],
      now,
      isDryRun: false,
      switchedOff: reading.switchedOff,
      toFields: (item) => flagFields(parseFields(FlagInput, item)),
    },
  );
  const { set } = new FlagSets(metadata, () => []).get(project.id);
  return {
    ...reading,
    messages: [...reading.notMapped, ...omitted].map(
      ({ flag, part, reason }) => `${flag}, ${part}: ${reason}`,
    ),
    /** A flag of the document, and whether it is on after the import. */
    flag: (key: string): FlagItem => ({
      ...reading.document.flags.find((flag) => flag.key === key)!,
      active: readFlags(metadata.db, project.id).find((flag) => flag.key === key)?.active ?? null,
    }),
    /** The value for a user; false when off. */
    value(key: string, distinctId: string, personPropertyOverrides: JsonObject = {}): string | boolean {
      const result = evaluate(set, requestFor(distinctId, { personPropertyOverrides })).results.get(key);
      return result === undefined ? false : clientValue(result);
    },
    payload(key: string, distinctId: string): Json {
      const { payload } = evaluate(set, requestFor(distinctId)).results.get(key)!;
      return payload === null ? null : (JSON.parse(payload) as Json);
    },
    /** Shares in percent of the values over many persons. */
    shares(key: string, personProperties: JsonObject = {}): Record<string, number> {
      const counts: Record<string, number> = {};
      for (let i = 0; i < 2_000; i++) {
        const value = String(this.value(key, `person ${i}`, personProperties));
        counts[value] = (counts[value] ?? 0) + 0.05;
      }
      return counts;
    },
  };
}

/** Within five percentage points. */
export const near = (percent: number) => expect.closeTo(percent, -1);
export const json = (value: unknown) => JSON.stringify(value);
