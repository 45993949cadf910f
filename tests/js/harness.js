/** A very small test harness: `test` registers, `run` runs, assertions throw with both values. */
const tests = [];

export function test(name, body) {
  tests.push({ name, body });
}

/** [{name, error}] with error "" for a test that passed. */
export async function run() {
  const results = [];
  for (const { name, body } of tests.splice(0)) {
    try {
      await body();
      results.push({ name, error: "" });
    } catch (error) {
      results.push({ name, error: error.stack ?? String(error) });
    }
  }
  return results;
}

export function equal(actual, expected) {
  if (!Object.is(actual, expected)) throw new Error(`expected ${show(expected)}, got ${show(actual)}`);
}

/** Equal as JSON; typed arrays count as lists. */
export function same(actual, expected) {
  if (show(actual) !== show(expected)) throw new Error(`expected ${show(expected)}, got ${show(actual)}`);
}

export function ok(value, what = "a true value") {
  if (!value) throw new Error(`expected ${what}, got ${show(value)}`);
}

export function throws(body, kind = Error) {
  try {
    body();
  } catch (error) {
    if (error instanceof kind) return error;
    throw error;
  }
  throw new Error(`expected ${kind.name} to be thrown`);
}

function show(value) {
  return JSON.stringify(value, (_, inner) => (ArrayBuffer.isView(inner) ? Array.from(inner) : inner));
}
