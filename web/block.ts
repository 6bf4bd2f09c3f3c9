// Blocks of the page as numbers. The format is that of src/page/README.md.

export interface Coding {
  codec: string;
  bits: number;
  low: number | null;
  high: number | null;
  scale: string;
}

function from_base64(text: string): Uint8Array {
  const decoder = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array }).fromBase64;
  if (decoder) return decoder.call(Uint8Array, text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

// base64(zlib(bytes)) as bytes.
export async function inflate(text: string): Promise<Uint8Array> {
  const stream = new Blob([from_base64(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer().catch(() => {
    throw new Error("cannot be inflated");      // browsers say "Failed to fetch", though nothing is fetched
  }));
}

// Codes [head][moment] from differences along the moments.
export function undo_differences(bytes: Uint8Array, bits: number, heads: number, moments: number): Uint16Array {
  const count = heads * moments;
  const planes = bits > 8 ? 2 : 1;
  if (bytes.length !== planes * count) throw new Error(`block has ${bytes.length} bytes, not ${planes * count}`);
  const codes = new Uint16Array(count);
  for (let head = 0; head < heads; ++head) {
    let code = 0;
    for (let moment = 0; moment < moments; ++moment) {
      const i = head * moments + moment;
      if (bits === 8) {
        code = (code + bytes[i]) & 255;
      } else {
        const word = bytes[i] | (bytes[count + i] << 8);
        if (moment === 0) code = word;
        else code += word & 1 ? -((word + 1) >> 1) : word >> 1;
      }
      codes[i] = code;
    }
  }
  return codes;
}

// Values [head][moment]; NaN where missing.
export function decode(bytes: Uint8Array, coding: Coding, heads: number, moments: number): Float32Array {
  if (coding.codec === "f32") return floats(bytes);
  const codes = undo_differences(bytes, coding.bits, heads, moments);
  const top = 2 ** coding.bits - 2;
  const low = coding.low ?? 0;
  const step = ((coding.high ?? 0) - low) / top;
  const values = new Float32Array(codes.length);
  const log = coding.scale === "log";
  for (let i = 0; i < codes.length; ++i) {
    const value = codes[i] > top ? NaN : low + codes[i] * step;
    values[i] = log ? Math.exp(value) : value;
  }
  return values;
}

export function floats(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
}

// Weight of query i on key j in a lower triangle of bytes.
export function weight(triangle: Uint8Array, i: number, j: number): number {
  const root = triangle[(i * (i + 1)) / 2 + j] / 255;
  return root * root;
}
