-- Reads a group's schedules made at run time, in the order of their last changes.
-- KEYS: 1 schedules, 2 payloads
-- ARGV: 1 the number after whose change payloads are asked for, 2 how many bytes of them are given before there are no more
-- Gives: up to which number payloads were given; then for each name, line and payload or ''
local call, match = redis.call, string.match
local fields, all = call('HGETALL', KEYS[1]), {}
for i = 1, #fields, 2 do
  all[#all + 1] = { fields[i], fields[i + 1], read_number(match(fields[i + 1], '^(%d+)|')) or 0 }
end
table.sort(all, function(a, b)
  if a[3] ~= b[3] then
    return a[3] < b[3]
  end
  return a[1] < b[1]
end)
local after, left = tonumber(ARGV[1]), tonumber(ARGV[2])
local upto, answer = after, { '' }
for _, entry in ipairs(all) do
  local payload = ''
  if entry[3] > after and left > 0 then
    payload = call('HGET', KEYS[2], entry[1]) or ''
    left, upto = left - #payload, entry[3]
  end
  answer[#answer + 1] = entry[1]
  answer[#answer + 1] = entry[2]
  answer[#answer + 1] = payload
end
answer[1] = string.format('%.0f', upto)
return answer
