/** A server with encrypted payloads. */

import { payloadCipher } from "../../../src/flags/store/payload-cipher.ts";
import { TestServer } from "../../support/management-server.ts";

export const cipherKey = Buffer.alloc(32, 7);
export const placeholderText = '"********* (encrypted)"';
export const secretText = { is_remote_configuration: true, has_encrypted_payloads: true };

export function secretServer(key = cipherKey) {
  return new TestServer({ deps: { payloads: payloadCipher(key) } });
}
