/** The server's side of an import: control socket handlers of `flagkeep import`. */

import type { ProjectDirectory } from "../accounts/project-directory.ts";
import { CaptureHandler } from "../ingestion/event-intake.ts";
import type { JournalPort } from "../journal/journal.ts";
import { JournalUnavailableError } from "../journal/lane-writer.ts";
import type { Lane } from "../journal/segment.ts";
import type { RpcHandlers, RpcUpload } from "../rpc/server.ts";

/** Parameters sent along with the requests of a batch. */
export interface ImportBatch {
  project_id: number;
}

/** What the server's ingestion accepts. */
export interface ImportLimits {
  /** Of the JSON of one event: `--body-limit`. */
  eventBytesMax: number;
}

/** Per lane, the last sequence number assigned. */
export type LastSeqs = Record<Lane, number>;

/** @param journal undefined while the server starts. */
export function importRoutes(
  projects: ProjectDirectory,
  journal: () => JournalPort | undefined,
  limits: ImportLimits,
): RpcHandlers {
  const opened = () => {
    const open = journal();
    if (open === undefined) throw new JournalUnavailableError("closed");
    return open;
  };
  const intake = new CaptureHandler({
    projects,
    journal: { append: (lane, entries) => opened().append(lane, entries) },
  });
  return {
    async import_requests({ meta, bytes }: RpcUpload) {
      const { project_id } = meta as ImportBatch;
      const project = projects.find(project_id);
      if (project === undefined || project.archivedAt !== null)
        throw new Error(`Project ${project_id} does not exist.`);
      await intake.appendImported(project, bytes);
    },
    import_limits: () => limits,
    last_seqs(): LastSeqs {
      const seqs: LastSeqs = { realtime: 0, historical: 0 };
      for (const { lane, lastSeq } of opened().state()) seqs[lane] = lastSeq;
      return seqs;
    },
  };
}
