/**
 * Encryption of backups in the age format (age-encryption.org/v1), so that `age -d` reads them too: to public keys, or with
 * a passphrase.
 */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import type { Decrypter, Encrypter } from "age-encryption";
import { AppError } from "../lib/errors.ts";
import { BackupDamaged } from "./errors.ts";

/** The first bytes of everything that is encrypted. */
export const ageMagic = Buffer.from("age-encryption.org/v1\n");

/** The key file or the recipients cannot be used. */
export class BackupKeyUnusable extends AppError {
  readonly code = "backup_key_unusable";
  override readonly hint =
    "A key file holds a passphrase in its one line, or AGE-SECRET-KEY-… as `age-keygen` writes it; a recipient begins with age1.";
}

/** It is encrypted, and no key was given. */
class BackupEncrypted extends AppError {
  readonly code = "backup_encrypted";
  override readonly hint = "Give the file with its passphrase or age key: --backup-key-file FILE.";
  constructor(name: string) {
    super(`${name} is encrypted.`);
  }
}

/** It is encrypted for another key. */
class WrongBackupKey extends AppError {
  readonly code = "wrong_backup_key";
  override readonly hint =
    "Give the passphrase or age key that it was encrypted for: --backup-key-file FILE.";
  constructor(name: string) {
    super(`${name} cannot be read with this key.`);
  }
}

export interface KeySettings {
  /** age1…, separated by commas; empty: none. */
  recipients: string;
  /** Path of a file with a passphrase or age keys; empty: what FLAGKEEP_BACKUP_PASSPHRASE says, if anything. */
  keyFile: string;
}

const keyFileBytesMax = 64 * 1024;
/** 64 MiB and half a second; what `age` itself takes would not fit beside a small appliance. */
const scryptWorkFactor = 16;

/** Loaded where keys are given: few have any, and the library takes 6 MB. */
const age = () => import("age-encryption");

/** What backups are encrypted for and read with. */
export class BackupKeys {
  private constructor(
    readonly recipients: readonly string[],
    private readonly identities: readonly string[],
    private readonly passphrase: string | undefined,
  ) {}

  static readonly none = new BackupKeys([], [], undefined);

  /** @throws {BackupKeyUnusable} */
  static async from(
    { recipients, keyFile }: KeySettings,
    environment: Readonly<Record<string, string | undefined>>,
  ): Promise<BackupKeys> {
    const named = recipients.split(",").flatMap((one) => one.trim() || []);
    for (const one of named) await requireRecipient(one);
    const { identities, passphrase } =
      keyFile === ""
        ? { identities: [], passphrase: environment.FLAGKEEP_BACKUP_PASSPHRASE || undefined }
        : readKeyFile(keyFile);
    if (named.length > 0 && passphrase !== undefined) {
      throw new BackupKeyUnusable("Backups are encrypted with a passphrase or for age keys, not both.");
    }
    const own = await Promise.all(
      identities.map((identity) =>
        recipientOf(identity).catch(() => {
          throw new BackupKeyUnusable(`${keyFile} holds a key that is none.`);
        }),
      ),
    );
    return new BackupKeys([...new Set([...named, ...own])].sort(), identities, passphrase);
  }

  /** Whether backups made with these keys are encrypted. */
  get encrypts(): boolean {
    return this.recipients.length > 0 || this.passphrase !== undefined;
  }

  get canDecrypt(): boolean {
    return this.identities.length > 0 || this.passphrase !== undefined;
  }

  get isPassphrase(): boolean {
    return this.passphrase !== undefined;
  }

  async encrypter(): Promise<Encrypter> {
    const { Encrypter } = await age();
    const encrypter = new Encrypter();
    if (this.passphrase !== undefined) {
      encrypter.setPassphrase(this.passphrase);
      encrypter.setScryptWorkFactor(scryptWorkFactor);
    }
    for (const recipient of this.recipients) encrypter.addRecipient(recipient);
    return encrypter;
  }

  /** @param name of the backup, for messages. @throws {BackupEncrypted} no key was given. */
  private async decrypter(name: string): Promise<Decrypter> {
    if (!this.canDecrypt) throw new BackupEncrypted(name);
    const { Decrypter } = await age();
    const decrypter = new Decrypter();
    if (this.passphrase !== undefined) decrypter.addPassphrase(this.passphrase);
    for (const identity of this.identities) decrypter.addIdentity(identity);
    return decrypter;
  }

  /** Decrypts a small text or piece. @throws {BackupEncrypted} @throws {WrongBackupKey} @throws {BackupDamaged} */
  async decrypt(bytes: Uint8Array, name: string): Promise<Uint8Array> {
    const decrypter = await this.decrypter(name);
    return await decrypter.decrypt(bytes).catch((error: unknown) => failure(error, name));
  }

  /**
   * Decrypts while it is read; memory does not grow with the size.
   *
   * @throws {BackupEncrypted} @throws {WrongBackupKey} @throws {BackupDamaged}
   */
  async *decrypted(bytes: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
    const decrypter = await this.decrypter(name);
    const source = Readable.from(bytes, { objectMode: false });
    let sourceError: unknown;
    source.on("error", (error) => {
      sourceError = error;
    });
    const web = Readable.toWeb(source) as unknown as ReadableStream<Uint8Array>;
    try {
      const plain = await decrypter.decrypt(web);
      for await (const chunk of plain as unknown as AsyncIterable<Uint8Array>) yield chunk;
    } catch (error) {
      // A source that cannot be read says nothing about the backup.
      if (sourceError !== undefined) throw sourceError;
      failure(error, name);
    } finally {
      source.destroy();
    }
  }
}

function failure(error: unknown, name: string): never {
  const message = error instanceof Error ? error.message : String(error);
  if (/no identity matched|passphrase/i.test(message)) throw new WrongBackupKey(name);
  if (error instanceof AppError) throw error;
  throw new BackupDamaged("encryption", `it cannot be decrypted (${message})`);
}

async function recipientOf(identity: string): Promise<string> {
  const { identityToRecipient } = await age();
  return await identityToRecipient(identity);
}

async function requireRecipient(text: string): Promise<void> {
  const { Encrypter } = await age();
  try {
    new Encrypter().addRecipient(text);
  } catch {
    throw new BackupKeyUnusable(`${text.slice(0, 80)} is no public key of age.`);
  }
}

/** @throws {BackupKeyUnusable} it is not there, or holds nothing that is a key. */
export function requireKeyFile(path: string): void {
  if (path !== "") readKeyFile(path);
}

function readKeyFile(path: string): { identities: string[]; passphrase: string | undefined } {
  let text: string;
  try {
    text = readFileSync(resolve(path), "utf8");
  } catch (error) {
    throw new BackupKeyUnusable(
      `The key file ${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`,
    );
  }
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
  if (text.length > keyFileBytesMax || lines.length === 0) {
    throw new BackupKeyUnusable(`The key file ${path} holds no key.`);
  }
  if (lines.every((line) => line.trim().startsWith("AGE-SECRET-KEY-"))) {
    return { identities: lines.map((line) => line.trim()), passphrase: undefined };
  }
  if (lines.length > 1) throw new BackupKeyUnusable(`The key file ${path} holds more than one passphrase.`);
  return { identities: [], passphrase: lines[0]! };
}
