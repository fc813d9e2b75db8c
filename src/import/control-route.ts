/** The appliance's side of an import: what the control socket answers to `flagkeep import`. */

import type { ProjectDirectory } from "../accounts/project-directory.ts";
import { Intake } from "../ingestion/intake.ts";
import type { JournalPort } from "../journal/journal.ts";
import { JournalUnavailableError } from "../journal/lane-writer.ts";
import type { Lane } from "../journal/segment.ts";
import type { RpcHandlers, RpcUpload } from "../rpc/server.ts";

/** What goes with the requests of a batch. */
export interface ImportBatch {
  project_id: number;
}

/** Per lane, the last sequence number that was given out. */
export type LastSeqs = Record<Lane, number>;

/** @param journal undefined while the appliance starts. */
export function importRoutes(
  projects: ProjectDirectory,
  journal: () => JournalPort | undefined,
): RpcHandlers {
  const opened = () => {
    const open = journal();
    if (open === undefined) throw new JournalUnavailableError("closed");
    return open;
  };
  const intake = new Intake({
    projects,
    journal: { append: (lane, entries) => opened().append(lane, entries) },
  });
  return {
    async import_requests({ meta, bytes }: RpcUpload) {
      const { project_id } = meta as ImportBatch;
      const project = projects.find(project_id);
      if (project === undefined || project.archivedAt !== null)
        throw new Error(`There is no project ${project_id}.`);
      await intake.appendImported(project, bytes);
    },
    last_seqs(): LastSeqs {
      const seqs: LastSeqs = { realtime: 0, historical: 0 };
      for (const { lane, lastSeq } of opened().state()) seqs[lane] = lastSeq;
      return seqs;
    },
  };
}
