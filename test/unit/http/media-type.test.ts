import { expect } from 'chai';
import { isJsonMediaType, isMergePatchMediaType } from '../../../shared/http/media-type.ts';

const CHARSETS_KEPT = [
  '',
  '; charset=utf-8',
  ';charset=UTF-8',
  '; charset=utf8',
  '; charset="utf-8"',
];
const CHARSETS_REFUSED = [
  '; charset=utf-16',
  '; charset=utf-7',
  '; charset=latin1',
  '; charset=iso-8859-1',
  '; charset=',
  '; charset=utf-8; charset=utf-16',
  '; charset=utf-8, text/plain',
];

for (const [name, accepts, type] of [
  ['isJsonMediaType', isJsonMediaType, 'application/json'],
  ['isMergePatchMediaType', isMergePatchMediaType, 'application/merge-patch+json'],
] as const) {
  describe(name, () => {
    for (const charset of CHARSETS_KEPT) {
      it(`accepts ${type}${charset}`, () => expect(accepts(`${type}${charset}`)).to.equal(true));
    }

    it('accepts any case and spacing', () => {
      expect(accepts(`${type.toUpperCase()} ; x=y`)).to.equal(true);
    });

    for (const charset of CHARSETS_REFUSED) {
      it(`refuses ${type}${charset}`, () => expect(accepts(`${type}${charset}`)).to.equal(false));
    }

    for (const other of [
      undefined,
      '',
      'text/plain',
      'application/vnd.api+json',
      'application/json-patch+json',
      'application/x-www-form-urlencoded',
      'application/json, text/plain',
      'application/jsonp',
      `${type}\u0000`,
    ]) {
      it(`refuses ${JSON.stringify(other)}`, () => expect(accepts(other)).to.equal(false));
    }
  });
}

it('tells JSON and merge patch apart', () => {
  expect(isJsonMediaType('application/merge-patch+json')).to.equal(false);
  expect(isMergePatchMediaType('application/json')).to.equal(false);
});
