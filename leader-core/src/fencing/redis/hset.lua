local new = 0
for i = 1, #ARGV, 1000 do
  new = new + redis.call('HSET', KEYS[1], unpack(ARGV, i, math.min(i + 999, #ARGV)))
end
return new
