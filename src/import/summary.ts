/** The summary of an import. */

import { type Static, Type } from "@sinclair/typebox";
import { ImportCounts } from "./counts.ts";

const count = (description: string) => Type.Integer({ minimum: 0, description });

const nullableTime = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

/** Total of flags, cohorts, experiments, features and surveys of a project copied from another server. */
export const ImportedFlags = Type.Object(
  {
    created: count("Flags, cohorts, experiments, features and surveys that were created."),
    updated: count("Those that were changed."),
    remarks: Type.Array(Type.String()),
  },
  { additionalProperties: false },
);
export type ImportedFlags = Static<typeof ImportedFlags>;

/** Output of `import … --json`. */
export const ImportSummary = Type.Object(
  {
    ...ImportCounts.properties,
    shared_devices: count("Devices with more than one user; only the first one is linked with the device."),
    first_time: nullableTime("Time of the earliest event."),
    last_time: nullableTime("Time of the latest event."),
    people: count("Distinct ids of the events that this run has read."),
    resumed: count("Records of `read` that earlier, interrupted runs had done."),
    dry_run: Type.Boolean(),
    complete: Type.Boolean({
      description: "False when the end of a file was not reached: it is corrupt, or the import stopped.",
    }),
    seconds: Type.Number({ minimum: 0, description: "Of this run." }),
    events_per_second: count("Records read by this run per second."),
    warnings: Type.Array(Type.String(), { description: "Doubts about values, one sentence each." }),
    formats: Type.Array(Type.String(), { description: "What the files are." }),
    reject_files: Type.Array(Type.String()),
    rejections: Type.Optional(
      Type.Record(Type.String(), Type.Integer({ minimum: 1 }), {
        description: "Of a dry run: rejected records by reason.",
      }),
    ),
    first_events: Type.Optional(
      Type.Array(Type.Record(Type.String(), Type.Unknown()), {
        description: "Of a dry run: the first three records as the events they would become.",
      }),
    ),
    time_spans: Type.Optional(
      Type.Record(
        Type.String(),
        Type.Object({ first: Type.String(), last: Type.String() }, { additionalProperties: false }),
        { description: "Of a dry run: per format, the earliest and the latest time of its events." },
      ),
    ),
    flags: Type.Optional(ImportedFlags),
  },
  { additionalProperties: false },
);
export type ImportSummary = Static<typeof ImportSummary>;
