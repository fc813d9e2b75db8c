/** Address and progress of an import. */

import type { Import } from "../../lib/api-types.ts";
import { duration, number, percent, size } from "../../lib/format.ts";
import { lazyMessages } from "../../messages/later.ts";

const w = lazyMessages.instance.imports;

export const isBusy = ({ state }: Import) =>
  state === "running" || state === "waiting" || state === "uploading";

export const importPath = ({ project_id: id, ...run }: Import, rest = "") =>
  `/api/projects/${id}/imports/${run.id}/${rest}`;

/** "46 % · 10,000 records/s · 53 s left · 3 rejected" */
export function formatProgress({ state, received_bytes: received, progress }: Import): string {
  if (state === "uploading") return size(received);
  const { bytes, total_bytes: total, records, records_per_second: rate, seconds_left: left } = progress;
  return [
    ...(state === "running" && total ? [percent(bytes / total)] : []),
    w.records(records),
    ...(state === "running" ? [w.rate(number(rate))] : []),
    ...(state === "running" && left !== null ? [w.timeLeft(duration(left))] : []),
    w.rejected(number(progress.rejected)),
  ].join(" · ");
}
