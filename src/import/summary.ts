/** What an import tells at its end. */

import { type Static, Type } from "@sinclair/typebox";

const count = (description: string) => Type.Integer({ minimum: 0, description });

/** Counts of records; over all runs of an import that was interrupted. */
export const ImportCounts = Type.Object(
  {
    read: count("Records in the files."),
    accepted: count("Events that were new."),
    duplicate: count("Events whose uuid was stored before, or that are in the files more than once."),
    made: count("Events that join a device and its user, or give a group its properties; not in `accepted`."),
    rejected: count("Records that are no events; they are in the reject files."),
    placeholder_ids: count(
      "Records with an id such as `(null)` or `unknown`, which names neither a device nor a user.",
    ),
  },
  { additionalProperties: false },
);
export type ImportCounts = Static<typeof ImportCounts>;

/** Flags and cohorts together, of a project that was copied from another server. */
export const ImportedFlags = Type.Object(
  {
    created: count("Flags and cohorts that were made."),
    updated: count("Flags and cohorts that were changed."),
    remarks: Type.Array(Type.String()),
  },
  { additionalProperties: false },
);
export type ImportedFlags = Static<typeof ImportedFlags>;

/** What `import … --json` prints. */
export const ImportSummary = Type.Object(
  {
    ...ImportCounts.properties,
    shared_devices: count("Devices with more than one user; only the first one is linked with the device."),
    resumed: count("Records of `read` that earlier, interrupted runs had done."),
    dry_run: Type.Boolean(),
    complete: Type.Boolean({
      description: "False when the end of a file was not reached: it is damaged, or the import stopped.",
    }),
    seconds: Type.Number({ minimum: 0, description: "Of this run." }),
    events_per_second: count("Records read by this run per second."),
    formats: Type.Array(Type.String(), { description: "What the files are." }),
    reject_files: Type.Array(Type.String()),
    flags: Type.Optional(ImportedFlags),
  },
  { additionalProperties: false },
);
export type ImportSummary = Static<typeof ImportSummary>;

export const noCounts = (): ImportCounts => ({
  ...{ read: 0, accepted: 0, duplicate: 0, made: 0, rejected: 0, placeholder_ids: 0 },
});

/** Changes `to`. */
export function addCounts(to: ImportCounts, more: ImportCounts): void {
  // The progress of an older version lacks some.
  for (const name of Object.keys(to) as (keyof ImportCounts)[]) to[name] += more[name] ?? 0;
}
