/**
 * Encryption of backups in the age format (age-encryption.org/v1), so that `age -d` can read them: for public keys, or
 * with a passphrase.
 */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import type { Decrypter, Encrypter } from "age-encryption";
import { AppError } from "../lib/errors.ts";
import { BackupCorruptError } from "./errors.ts";

/** The first bytes of encrypted data. */
export const ageMagic = Buffer.from("age-encryption.org/v1\n");

/** The key file or the recipients cannot be used. */
export class InvalidBackupKeyError extends AppError {
  readonly code = "backup_key_unusable";
  override readonly hint =
    "A key file contains one line with a passphrase, or AGE-SECRET-KEY-… as written by `age-keygen`. Recipients start with age1.";
}

/** The backup is encrypted, and no key was given. */
class BackupEncryptedError extends AppError {
  readonly code = "backup_encrypted";
  override readonly hint = "Pass the file with its passphrase or age key: --backup-key-file FILE.";
  constructor(name: string) {
    super(`${name} is encrypted.`);
  }
}

/** The backup is encrypted for another key. */
class BackupKeyMismatchError extends AppError {
  readonly code = "wrong_backup_key";
  override readonly hint = "Pass the passphrase or age key it was encrypted for: --backup-key-file FILE.";
  constructor(name: string) {
    super(`${name} cannot be decrypted with this key.`);
  }
}

export interface KeyOptions {
  /** age1…, separated by commas; empty: none. */
  recipients: string;
  /** Path of a file with a passphrase or age keys; empty: FLAGKEEP_BACKUP_PASSPHRASE, if set. */
  keyFile: string;
}

const keyFileBytesMax = 64 * 1024;
/** 64 MiB and 0.5 s; the default of `age` needs too much memory next to a small server. */
const scryptWorkFactor = 16;

/** Loaded on demand: few servers have keys, and the library takes 6 MB. */
const age = () => import("age-encryption");

/** Keys that encrypt and decrypt backups. */
export class BackupKeys {
  private constructor(
    readonly recipients: readonly string[],
    private readonly identities: readonly string[],
    private readonly passphrase: string | undefined,
  ) {}

  static readonly none = new BackupKeys([], [], undefined);

  /** @throws {InvalidBackupKeyError} */
  static async from(
    { recipients, keyFile }: KeyOptions,
    environment: Readonly<Record<string, string | undefined>>,
  ): Promise<BackupKeys> {
    const named = recipients.split(",").flatMap((value) => value.trim() || []);
    for (const value of named) await assertRecipient(value);
    const { identities, passphrase } =
      keyFile === ""
        ? { identities: [], passphrase: environment.FLAGKEEP_BACKUP_PASSPHRASE || undefined }
        : readKeyFile(keyFile);
    if (named.length > 0 && passphrase !== undefined) {
      throw new InvalidBackupKeyError("Backups are encrypted with a passphrase or for age keys, not both.");
    }
    const own = await Promise.all(
      identities.map((identity) =>
        getRecipient(identity).catch(() => {
          throw new InvalidBackupKeyError(`${keyFile} contains an invalid age key.`);
        }),
      ),
    );
    return new BackupKeys([...new Set([...named, ...own])].sort(), identities, passphrase);
  }

  /** Whether backups created with these keys are encrypted. */
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

  /** @param name of the backup, for messages. @throws {BackupEncryptedError} no key was given. */
  private async decrypter(name: string): Promise<Decrypter> {
    if (!this.canDecrypt) throw new BackupEncryptedError(name);
    const { Decrypter } = await age();
    const decrypter = new Decrypter();
    if (this.passphrase !== undefined) decrypter.addPassphrase(this.passphrase);
    for (const identity of this.identities) decrypter.addIdentity(identity);
    return decrypter;
  }

  /**
   * Decrypts a small string or chunk.
   *
   * @throws {BackupEncryptedError} @throws {BackupKeyMismatchError} @throws {BackupCorruptError}
   */
  async decrypt(bytes: Uint8Array, name: string): Promise<Uint8Array> {
    const decrypter = await this.decrypter(name);
    return await decrypter.decrypt(bytes).catch((error: unknown) => failure(error, name));
  }

  /**
   * Decrypts a stream with constant memory.
   *
   * @throws {BackupEncryptedError} @throws {BackupKeyMismatchError} @throws {BackupCorruptError}
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
      // An unreadable source says nothing about the backup.
      if (sourceError !== undefined) throw sourceError;
      failure(error, name);
    } finally {
      source.destroy();
    }
  }
}

function failure(error: unknown, name: string): never {
  const message = error instanceof Error ? error.message : String(error);
  if (/no identity matched|passphrase/i.test(message)) throw new BackupKeyMismatchError(name);
  if (error instanceof AppError) throw error;
  throw new BackupCorruptError("encryption", `it cannot be decrypted (${message})`);
}

async function getRecipient(identity: string): Promise<string> {
  const { identityToRecipient } = await age();
  return await identityToRecipient(identity);
}

async function assertRecipient(text: string): Promise<void> {
  const { Encrypter } = await age();
  try {
    new Encrypter().addRecipient(text);
  } catch {
    throw new InvalidBackupKeyError(`Invalid age public key "${text.slice(0, 80)}".`);
  }
}

/** @throws {InvalidBackupKeyError} the file is missing or contains no valid key. */
export function assertKeyFile(path: string): void {
  if (path !== "") readKeyFile(path);
}

function readKeyFile(path: string): { identities: string[]; passphrase: string | undefined } {
  let text: string;
  try {
    text = readFileSync(resolve(path), "utf8");
  } catch (error) {
    throw new InvalidBackupKeyError(
      `The key file ${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`,
    );
  }
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
  if (text.length > keyFileBytesMax || lines.length === 0) {
    throw new InvalidBackupKeyError(`The key file ${path} contains no key.`);
  }
  if (lines.every((line) => line.trim().startsWith("AGE-SECRET-KEY-"))) {
    return { identities: lines.map((line) => line.trim()), passphrase: undefined };
  }
  if (lines.length > 1)
    throw new InvalidBackupKeyError(`The key file ${path} contains more than one passphrase.`);
  return { identities: [], passphrase: lines[0]! };
}
