/** Encrypts short texts at rest: AES-256-GCM with a random nonce each. */

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

export const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/**
 * @param key 32 bytes. @param identity what the text belongs to: elsewhere it cannot be decrypted.
 * @returns nonce, tag and text in base64.
 */
export function encryptText(key: Buffer, identity: Buffer, clear: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(identity);
  const text = Buffer.concat([cipher.update(clear, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64");
}

/** @param identity absent: none was used. @throws the key or the identity is different, or the text is corrupt. */
export function decryptText(key: Buffer, identity: Buffer | undefined, sealed: string): string {
  const bytes = Buffer.from(sealed, "base64");
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes), {
    authTagLength: tagBytes,
  });
  if (identity !== undefined) decipher.setAAD(identity);
  decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
  const text = bytes.subarray(nonceBytes + tagBytes);
  return Buffer.concat([decipher.update(text), decipher.final()]).toString("utf8");
}

/** Encrypts and decrypts texts with one key. */
export interface SecretCipher {
  /** @param identity what the text belongs to, such as `webhook 1`. */
  seal(identity: string, clear: string): string;
  /** Undefined if the text was encrypted with another key or for something else, or is corrupt. */
  open(identity: string, sealed: string): string | undefined;
}

/** @param key 32 bytes. */
export function secretCipher(key: Buffer): SecretCipher {
  return {
    seal: (identity, clear) => encryptText(key, Buffer.from(identity), clear),
    open: (identity, sealed) => {
      try {
        return decryptText(key, Buffer.from(identity), sealed);
      } catch {
        return undefined;
      }
    },
  };
}
