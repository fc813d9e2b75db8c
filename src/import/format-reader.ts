/** Reads the records of a content after detecting their format, with the reading options that belong to it. */

import { formatNumber } from "../lib/json/exact.ts";
import type { Json, JsonObject } from "../lib/json/value.ts";
import type { ImportJob } from "./import-job.ts";
import { type FieldRule, withFields } from "./map/fields.ts";
import {
  detectFormat,
  getMembers,
  getTitle,
  isFileType,
  type NearFormat,
  nearestFormats,
  type RecordFormat,
} from "./map/formats.ts";
import { toObject } from "./map/lenient-json.ts";
import { snowplowRow } from "./map/snowplow.ts";
import { plausibleTimes, type TimeZone, toTime } from "./map/time.ts";
import type { Content } from "./read/archive-contents.ts";
import { TotalsError, UnrecognizedFormatError } from "./read/input.ts";
import { recordSource } from "./read/read-records.ts";
import type { ReadRecord } from "./read/record.ts";
import type { RecordCopier } from "./read/record-copier.ts";

/** Records used for format detection. */
const samplesMax = 20;

export class FormatReader {
  /** Known from the first record on, like everything else here. */
  format: RecordFormat = "events";
  /** Of times without a zone; undefined: UTC. */
  zone: TimeZone | undefined;
  /** Compares times of the records with UTC times in them. */
  localTimes: LocalTimes | undefined;
  /** Copies typical records. */
  copier: RecordCopier | undefined;
  /** Detected from the first records. */
  private seems: ReturnType<typeof detectFormat>;

  constructor(
    private readonly job: ImportJob,
    private readonly nowMicros: number,
  ) {}

  /** The detected format, if it differs from the one in use. */
  get guess(): RecordFormat | undefined {
    const { seems } = this;
    return seems === "totals" || seems === this.format ? undefined : seems;
  }

  /** @throws {UnreadableFileError} the records can never be events. @throws {CorruptInputError} */
  async *records(): AsyncGenerator<readonly ReadRecord[]> {
    const { content, format, fields, onFormat } = this.job;
    const forced = format === "csv" || format === "parquet" ? format : undefined;
    const { shape, records, copyWith } = recordSource(content, forced, { ...this.job, snowplowRow });
    const samples: ReadRecord[] = [];
    let found: ReturnType<typeof detectFormat>;
    try {
      while (samples.length < samplesMax && found === undefined) {
        const { value, done } = await records.next();
        if (done) break;
        samples.push(...value);
        const { record } = samples.at(-1)!;
        if (record !== undefined) found = detectFormat(withFields(record, fields));
      }
      this.seems = found;
      if (isFileType(format) || format === "auto") {
        if (format === "auto") assertEvents(this.job, found, samples);
        this.format = format === "auto" && found !== undefined && found !== "totals" ? found : "events";
      } else this.format = format;
      const { zone } = this.job;
      if (zone === undefined && this.format === "mixpanel") this.localTimes = new LocalTimes(this.nowMicros);
      if (zone !== undefined) this.zone = { toInstant: zone, hasLocalNumbers: this.format === "mixpanel" };
      onFormat([getTitle(this.format), shape, ...content.packing, content.archive ?? []].flat().join(", "));
      const members = fields.length === 0 && zone === undefined ? getMembers(this.format) : undefined;
      this.copier = members && this.job.copiers.get(this.format, members, plausibleTimes(this.nowMicros));
      if (this.copier !== undefined) copyWith(this.copier);
      yield samples;
      yield* records;
    } finally {
      await records.return(undefined);
    }
  }
}

/** Rejects files that cannot become events, with what they are instead (contract, import 1.9). */

interface Recognized {
  content: Pick<Content, "name">;
  fields: readonly FieldRule[];
}

/**
 * @param found   the detected format.
 * @param samples the first records.
 * @throws {UnreadableFileError}
 */
function assertEvents(
  { content: { name }, fields }: Recognized,
  found: ReturnType<typeof detectFormat>,
  samples: readonly ReadRecord[],
): void {
  if (found === "totals")
    throw new TotalsError(`${name} holds totals per day, no events: it cannot be loaded.`);
  const sent = samples.find(({ record }) => record !== undefined)?.record;
  // Without a record each of the first lines is rejected with its own reason.
  if (sent === undefined) return;
  if (found === undefined)
    throw new UnrecognizedFormatError(
      describeUnrecognized(name, fields.length === 0 ? sent : withFields(sent, fields)),
    );
}

/** Describes the nearest formats of a file and the fields that its records miss (contract, import 1.9). Pure. */

const formatsShown = 3;
const membersShown = 20;
const nameLengthMax = 60;

/** @param record the first one, as `--map` has changed it. */
function describeUnrecognized(name: string, record: JsonObject): string {
  const members = Object.keys(record);
  const listed = members.slice(0, membersShown).map(shortened).join(", ");
  const more = members.length > membersShown ? ` and ${members.length - membersShown} more` : "";
  const has = members.length === 0 ? "has no members" : `has the members ${listed}${more}`;
  const near = nearestFormats(record, formatsShown).map(
    ({ format, lacks }) => `${format} (lacks ${lacks.map(getNames).join(", ")})`,
  );
  return `${name} was not recognized: its first record ${has}. Nearest formats: ${near.join("; ")}.`;
}

function getNames(group: NearFormat["lacks"][number]): string {
  return typeof group === "string" ? group : group.join(" or ");
}

function shortened(name: string): string {
  return name.length <= nameLengthMax ? name : `${name.slice(0, nameLengthMax).toWellFormed()}…`;
}

/** Detects that a Mixpanel project recorded local times (contract, import 1.5 Z2). Pure. */

/** Number of records to compare. */
export const comparedRecordsMax = 1_000;
const minuteMicros = 60_000_000;
const quarterMicros = 15 * minuteMicros;
/** Time zones differ from UTC by at most 14 hours. */
const quartersMax = 14 * 4;
/** An event is processed some time after it happened. */
const delayMicrosMax = 5 * minuteMicros;

export class LocalTimes {
  private seen = 0;
  private compared = 0;
  /** The common difference of all records, in quarters of an hour; null when they disagree. */
  private quarters: number | undefined | null;

  constructor(private readonly nowMicros: number) {}

  /** Compares the time of a record with the UTC times that Mixpanel itself added. */
  add(record: JsonObject | undefined): void {
    if (this.seen >= comparedRecordsMax || this.quarters === null || record === undefined) return;
    this.seen += 1;
    const properties = toObject(record.properties);
    const time = toTime(properties.time, this.nowMicros);
    const reference = toMilliseconds(properties.$mp_api_timestamp_ms ?? properties.mp_processing_time_ms);
    if (typeof time !== "number" || reference === undefined) return;
    this.compared += 1;
    const difference = time - reference * 1_000;
    const quarters = Math.round(difference / quarterMicros);
    const isZone =
      quarters !== 0 &&
      Math.abs(quarters) <= quartersMax &&
      Math.abs(difference - quarters * quarterMicros) <= delayMicrosMax;
    this.quarters = isZone && (this.quarters ?? quarters) === quarters ? quarters : null;
  }

  /** The warning and the number of compared records; undefined when there is nothing to warn about. */
  get warning(): [warning: string, records: number] | undefined {
    if (typeof this.quarters !== "number") return undefined;
    const minutes = Math.abs(this.quarters) * 15;
    const [hours, rest] = [Math.floor(minutes / 60), minutes % 60].map((n) => String(n).padStart(2, "0"));
    return [`mixpanel_local_time ${this.quarters < 0 ? "-" : "+"}${hours}:${rest}`, this.compared];
  }
}

function toMilliseconds(value: Json | undefined): number | undefined {
  const number = Number(formatNumber(value) ?? value ?? Number.NaN);
  return Number.isFinite(number) && number > 0 ? number : undefined;
}
