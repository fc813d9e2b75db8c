/**
 * Decides which devices and users of records are linked. All links that the importer derives from pairs in records pass
 * this gate; explicit merges of the customer do not. Source: contract, import 1.1.
 */

import { DeviceOwners } from "./device-owners.ts";
import type { ImportClient } from "./import-client.ts";
import type { Pair } from "./map/mapped.ts";

export interface LinkGateOptions {
  target: Pick<ImportClient, "personsOf">;
  stateFolder: string;
  projectId: number;
  /** Of this import over all its runs. */
  importId: string;
  isDryRun: boolean;
  /** When false nothing is linked; devices with several users are still counted. */
  isLinking: boolean;
}

export class LinkGate implements Disposable {
  private owners: DeviceOwners | undefined;
  /** Of the previous batch. */
  private turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: LinkGateOptions) {}

  /**
   * Decides the pairs of a batch; batches are decided in call order, whenever the store responds.
   *
   * @returns for each pair whether it is linked.
   */
  async decide(pairs: readonly Pair[]): Promise<boolean[]> {
    if (pairs.length === 0) return [];
    const { target, isLinking } = this.options;
    const owners = this.opened();
    const unknown = owners.findUnknown(pairs);
    const requested = unknown.length === 0 ? new Map() : target.personsOf(unknown);
    const before = this.turn;
    const decided = (async () => {
      const [live] = await Promise.all([requested, before]);
      return owners.decide(pairs, live);
    })();
    this.turn = decided.catch(() => undefined);
    const links = await decided;
    return isLinking ? links : links.map(() => false);
  }

  /** Users that records name, with or without a device: no later pair has one of them as its device. */
  addUsers(users: readonly string[]): void {
    if (users.length > 0) this.opened().addUsers(users);
  }

  /** Devices with more than one user. */
  get sharedDevices(): number {
    return this.owners?.sharedCount ?? 0;
  }

  private opened(): DeviceOwners {
    const { stateFolder, projectId, importId, isDryRun } = this.options;
    this.owners ??= new DeviceOwners(stateFolder, projectId, importId, isDryRun);
    return this.owners;
  }

  [Symbol.dispose](): void {
    this.owners?.[Symbol.dispose]();
  }
}
