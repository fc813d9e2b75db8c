/**
 * Decides which devices and users of records are linked. Every link that the importer makes of a pair in a record passes it;
 * merges that the customer ordered by name do not. Source: contract, import 1.1.
 */

import { DeviceOwners, type Pair } from "./device-owners.ts";
import type { ImportTarget } from "./target.ts";

export interface LinkGateSettings {
  target: Pick<ImportTarget, "personsOf">;
  stateFolder: string;
  projectId: number;
  /** Of this import over all its runs. */
  importId: string;
  isDryRun: boolean;
  /** Without it nothing is linked; devices with several users are counted all the same. */
  isLinking: boolean;
}

export class LinkGate implements Disposable {
  private owners: DeviceOwners | undefined;
  /** Of the batch before. */
  private turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly settings: LinkGateSettings) {}

  /**
   * Decides the pairs of a batch; batches are decided in the order of the calls, whenever the store answers.
   *
   * @returns for each pair whether it is linked.
   */
  async decide(pairs: readonly Pair[]): Promise<boolean[]> {
    if (pairs.length === 0) return [];
    const { target, stateFolder, projectId, importId, isDryRun, isLinking } = this.settings;
    this.owners ??= new DeviceOwners(stateFolder, projectId, importId, isDryRun);
    const { owners } = this;
    const unknown = owners.unknownOf(pairs);
    const asked = unknown.length === 0 ? new Map() : target.personsOf(unknown);
    const before = this.turn;
    const decided = (async () => {
      const [live] = await Promise.all([asked, before]);
      return owners.decide(pairs, live);
    })();
    this.turn = decided.catch(() => undefined);
    const links = await decided;
    return isLinking ? links : links.map(() => false);
  }

  /** Devices with more than one user. */
  get sharedDevices(): number {
    return this.owners?.sharedCount ?? 0;
  }

  [Symbol.dispose](): void {
    this.owners?.[Symbol.dispose]();
  }
}
