/** Reads the records of a content after detecting their format, with the reading options that belong to it. */

import type { ImportJob } from "./import-job.ts";
import { withFields } from "./map/fields.ts";
import { detectFormat, getMembers, getTitle, isFileType, type RecordFormat } from "./map/formats.ts";
import { LocalTimes } from "./map/local-times.ts";
import { snowplowRow } from "./map/snowplow.ts";
import { type TimeZone, usualTimes } from "./map/time.ts";
import { recordSource } from "./read/read-records.ts";
import type { ReadRecord } from "./read/record.ts";
import type { RecordCopier } from "./read/record-copier.ts";
import { assertEvents } from "./recognize.ts";

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
      this.copier = members && this.job.copiers.of(this.format, members, usualTimes(this.nowMicros));
      if (this.copier !== undefined) copyWith(this.copier);
      yield samples;
      yield* records;
    } finally {
      await records.return(undefined);
    }
  }
}
